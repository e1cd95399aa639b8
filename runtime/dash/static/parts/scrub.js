// Back through time: the events of a run under a slider, with steps, and back to now.

import { html } from "htm/preact";

import { clock } from "../format.js";

export function Scrub({ view, last, past, lookAt }) {
  const at = past ? view.seq : last;
  const step = (by) => lookAt(Math.max(1, Math.min(last, at + by)));
  return html`<div class=${`scrub ${past ? "past" : ""}`}>
    <button onClick=${() => lookAt(1)} disabled=${last === 0} aria-label="to the first event">«</button>
    <button onClick=${() => step(-1)} disabled=${at <= 1} aria-label="one event back">‹</button>
    <input type="range" min="1" max=${Math.max(1, last)} value=${at} aria-label="event" aria-valuetext=${`event ${at} of ${last}`}
      onInput=${(event) => lookAt(Number(event.target.value))} />
    <button onClick=${() => step(1)} disabled=${!past} aria-label="one event on">›</button>
    <span class="where">${at} of ${last}${view.at ? ` · ${clock(view.at)}` : ""}</span>
    <button class=${past ? "first" : ""} onClick=${() => lookAt(null)} disabled=${!past}>Now</button>
  </div>`;
}
