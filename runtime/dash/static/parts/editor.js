// A text to edit, with numbered lines, and the faults of it at their lines and below.

import { html } from "htm/preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** `faults` are `{line, column, text, warning}`; `change(text)` hears what is typed. Escape, then Tab leaves the text. */
export function Editor({ label, text, change, faults, rows = 22 }) {
  const area = useRef(null);
  const gutter = useRef(null);
  const leaving = useRef(false);
  const lines = text.split("\n").length;
  const marks = new Map();
  for (const fault of faults) if (!marks.has(fault.line) || !fault.warning) marks.set(fault.line, fault);
  const scrolled = () => { gutter.current.scrollTop = area.current.scrollTop; };
  useLayoutEffect(scrolled);
  const go = (fault) => {
    const before = text.split("\n").slice(0, fault.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
    const at = before + Math.max(0, fault.column - 1);
    area.current.focus();
    area.current.setSelectionRange(at, at + Math.max(fault.width ?? 1, 1));
    area.current.scrollTop = Math.max(0, (fault.line - 4) * (area.current.scrollHeight / lines));
  };
  const key = (event) => {
    if (event.key === "Escape") leaving.current = true;
    else if (event.key === "Tab" && !event.shiftKey && !leaving.current) {
      event.preventDefault();
      area.current.setRangeText("  ", area.current.selectionStart, area.current.selectionEnd, "end");
      change(area.current.value);
    } else if (event.key !== "Tab") leaving.current = false;
  };
  const id = `faults-${label.replace(/\W+/g, "-")}`;
  return html`<div class="editor">
    <div class="sheet">
      <div class="gutter" ref=${gutter} aria-hidden="true">${Array.from({ length: lines }, (_, index) => {
        const fault = marks.get(index + 1);
        return html`<span key=${index} class=${fault ? (fault.warning ? "warned" : "wrong") : ""} title=${fault?.text}>${index + 1}</span>`;
      })}</div>
      <textarea ref=${area} rows=${rows} aria-label=${label} aria-describedby=${id} aria-invalid=${faults.some((fault) => !fault.warning)} spellcheck=${false} autocapitalize="off"
        wrap="off" value=${text} onInput=${(event) => change(event.target.value)} onScroll=${scrolled} onKeyDown=${key}></textarea>
    </div>
    <ul class="faults" id=${id} aria-live="polite">${faults.map((fault) => html`<li key=${`${fault.line}.${fault.column}.${fault.text}`} class=${fault.warning ? "warned" : "wrong"}>
      <button class="quiet more" onClick=${() => go(fault)}>${fault.line}:${fault.column}</button> ${fault.text}</li>`)}</ul>
  </div>`;
}
