// A list that draws only the rows in sight, of one height or measured, and stays at its end while its end is looked at.

import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";

const SPARE = 400; // pixels drawn beyond each edge

/**
 * `items` drawn by `row(item, index)`, each under `keyOf(item)`. `height` is a row's height in pixels, a guess unless
 * `fixed`. `stick`: follow the end while it is in sight. `reveal`: the index of a row to bring into sight when it changes.
 */
export function Virtual({ items, keyOf, row, height, fixed = false, stick = false, reveal = -1, label, role = "list" }) {
  const box = useRef(null);
  const known = useRef(new Map());
  const atEnd = useRef(true);
  const [, draw] = useReducer((count) => count + 1, 0);

  const heightOf = (item) => (fixed ? height : known.current.get(keyOf(item)) ?? height);
  const total = () => (fixed ? items.length * height : items.reduce((sum, item) => sum + heightOf(item), 0));

  useLayoutEffect(() => {
    const drawn = new ResizeObserver(draw);
    drawn.observe(box.current);
    return () => drawn.disconnect();
  }, []);

  useLayoutEffect(() => {
    // Rows are measured once they are drawn; those that turn out otherwise than guessed move what follows.
    if (!fixed) {
      let changed = false;
      for (const each of box.current.querySelectorAll(":scope > .row")) {
        const now = each.getBoundingClientRect().height;
        if (now && Math.abs((known.current.get(each.dataset.key) ?? -1) - now) > 0.5) {
          known.current.set(each.dataset.key, now);
          changed = true;
        }
      }
      if (changed) draw();
    }
    if (stick && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  });

  useEffect(() => {
    if (reveal < 0 || !box.current) return;
    const top = fixed ? reveal * height : items.slice(0, reveal).reduce((sum, item) => sum + heightOf(item), 0);
    const { scrollTop, clientHeight } = box.current;
    if (top < scrollTop || top + height > scrollTop + clientHeight) box.current.scrollTop = Math.max(0, top - clientHeight / 2);
  }, [reveal]);

  const scrolled = () => {
    if (!box.current) return; // the last scroll of a list that has just gone
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    atEnd.current = scrollTop + clientHeight >= scrollHeight - 30;
    draw();
  };

  const { scrollTop = 0, clientHeight = 600 } = box.current ?? {};
  const following = stick && atEnd.current;
  const all = total();
  const from = (following ? Math.max(0, all - clientHeight) : scrollTop) - SPARE;
  const until = (following ? all : scrollTop + clientHeight) + SPARE;
  let first = 0;
  let above = 0;
  if (fixed) {
    first = Math.max(0, Math.min(items.length, Math.floor(from / height)));
    above = first * height;
  } else {
    while (first < items.length && above + heightOf(items[first]) < from) above += heightOf(items[first++]);
  }
  let last = first;
  let end = above;
  while (last < items.length && end < until) end += heightOf(items[last++]);

  return html`<div class="virtual" ref=${box} onScroll=${scrolled} tabindex="0" role=${role} aria-label=${label}>
    <div style=${{ height: `${above}px` }}></div>
    ${items.slice(first, last).map((item, index) => html`<div class="row" role=${role === "list" ? "listitem" : undefined}
      key=${keyOf(item)} data-key=${keyOf(item)} style=${fixed ? { height: `${height}px` } : undefined}>${row(item, first + index)}</div>`)}
    <div style=${{ height: `${Math.max(0, all - end)}px` }}></div>
  </div>`;
}
