// The messages between actors, and between them and you, as a sequence: a column each, an arrow a message.

import { html } from "htm/preact";

import { clock, oneLine } from "../format.js";
import { HUMAN } from "../fold.js";
import { short, subtree } from "../look.js";
import { Virtual } from "./virtual.js";

const WIDE = 120;
const ROW = 40;

export function Sequence({ view, pick }) {
  const columns = [HUMAN, ...subtree(view, view.root).map((actor) => actor.path)];
  const place = new Map(columns.map((path, index) => [path, index * WIDE + WIDE / 2]));
  const messages = view.messages.filter((each) => place.has(each.from) && place.has(each.to));
  const width = `${columns.length * WIDE + 70}px`;
  return html`<div class="sequence"><div class="sheet" style=${{ width }}>
    <div class="heads"><span class="when"></span>${columns.map((path) => html`<span style=${{ width: `${WIDE}px` }} title=${path}>${short(path)}</span>`)}</div>
    <${Virtual} items=${messages} keyOf=${(each) => `${each.seq}.${each.kind}.${each.to}`} height=${ROW} fixed stick label="messages"
      row=${(each) => html`<${Arrow} ...${each} columns=${columns} place=${place} pick=${pick} />`} />
  </div></div>`;
}

function Arrow({ seq, at, from, to, kind, text, columns, place, pick }) {
  const [left, right] = [place.get(from), place.get(to)].sort((a, b) => a - b);
  const forward = place.get(to) > place.get(from);
  const words = `${kind}: ${oneLine(text, 160)}`;
  return html`<div class="message">
    <time>${clock(at)}</time>
    ${columns.map((path) => html`<i class="life" style=${{ left: `${70 + place.get(path)}px` }}></i>`)}
    <button class=${`arrow ${forward ? "forward" : "back"}`} style=${{ left: `${70 + left}px`, width: `${Math.max(right - left, 8)}px` }} title=${words}
      aria-label=${`${short(from)} to ${short(to)}, ${words}`} onClick=${() => pick(seq, from === HUMAN ? to : from)}><span>${words}</span></button>
  </div>`;
}
