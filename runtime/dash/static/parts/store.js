// One run as a page has it: every event so far, the view of now, and the view of an earlier moment while one looks back.

import { useEffect, useReducer, useRef } from "preact/hooks";

import { follow } from "../api.js";
import { emptyView, fold, foldUntil } from "../fold.js";

class Run {
  events = [];
  now = emptyView();
  past = null;
  owned = false;
  reached = false;
  connection = "";
  over = false;

  take(found) {
    for (const event of found) {
      if (event.seq !== undefined) {
        delete event.parts; // the reply once more, as its wire had it
        this.events.push(event);
      }
      fold(this.now, event);
    }
  }

  /** Look at the run as it was after an event; null looks at it as it is. */
  lookAt(seq) {
    if (seq === null || seq >= this.now.seq) this.past = null;
    else if (this.past && this.past.seq <= seq) {
      // An event's number is its place: they come without gaps.
      for (let at = this.past.seq; at < seq; at++) fold(this.past, this.events[at]);
    } else this.past = foldUntil(this.events, Math.max(1, seq));
  }

  get view() {
    return this.past ?? this.now;
  }

  /** The moment whose clocks are shown: now for a run that goes on, else that of the last event looked at. */
  get clock() {
    return this.owned && !this.past && !this.now.report ? Date.now() / 1000 : this.view.at;
  }
}

/**
 * Follow a run. Returns what is known of it and `lookAt`; the component is drawn again at most once a frame, whatever
 * comes, and once a second while the run is live, for its clocks.
 */
export function useRun(id) {
  const [, draw] = useReducer((count) => count + 1, 0);
  const found = useRef(null);
  if (found.current === null) found.current = new Run();
  const run = found.current;
  const frame = useRef(0);
  const soon = () => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      draw();
    });
  };
  useEffect(() => {
    const end = follow(id, {
      events(events) {
        run.take(events);
        soon();
      },
      reached(where) {
        run.reached = true;
        run.owned = where.owned;
        soon();
      },
      state(text) {
        run.connection = text;
        soon();
      },
      over(text) {
        run.connection = text;
        run.over = true;
        soon();
      },
    });
    const ticking = setInterval(() => run.owned && !document.hidden && soon(), 1000);
    return () => {
      end();
      clearInterval(ticking);
      cancelAnimationFrame(frame.current);
    };
  }, [id]);
  const lookAt = (seq) => {
    run.lookAt(seq);
    soon();
  };
  return { run, lookAt };
}
