// Every kept event on a line, as the journal has it.

import { html } from "htm/preact";

import { clock, oneLine } from "../format.js";
import { brief, short } from "../look.js";
import { Virtual } from "./virtual.js";

/** Up to the event `until`; `pick(seq)` looks at the run as it was then. */
export function Events({ events, until, pick }) {
  const shown = events.length > until ? events.slice(0, until) : events;
  return html`<${Virtual} items=${shown} keyOf=${(event) => event.seq} height=${24} fixed stick label="events" row=${(event) => html`
    <button class="event" onClick=${() => pick(event.seq)} title="look at the run as it was then">
      <span class="seq">${event.seq}</span><time>${clock(Date.parse(event.at) / 1000)}</time><b>${short(event.actor)}</b><span class="type">${event.type}</span>
      <span class="brief">${oneLine(brief(event), 300)}</span></button>`} />`;
}
