// A text whose lines are coloured where it is a diff, and cut where it is long; all of it text nodes.

import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { firstLines } from "../format.js";

const DIFF = /^(@@ |--- |\+\+\+ |diff )/m;

function kindOf(line) {
  if (/^(\+\+\+|---|diff |index )/.test(line)) return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "taken";
  return "same";
}

/** A diff, or any text: the first `most` lines, and a button for the others. */
export function Text({ text, most = 3, diff = DIFF.test(text) }) {
  const [open, setOpen] = useState(false);
  const whole = text.trimEnd();
  const { text: shown, more } = open ? { text: whole, more: 0 } : firstLines(whole, most);
  return html`<div class="text">
    <pre>${diff ? shown.split("\n").map((line) => html`<span class=${kindOf(line)}>${line}${"\n"}</span>`) : shown}</pre>
    ${(more > 0 || open) && html`<button class="quiet more" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      ${open ? "fold" : `+${more} ${more === 1 ? "line" : "lines"}`}</button>`}
  </div>`;
}
