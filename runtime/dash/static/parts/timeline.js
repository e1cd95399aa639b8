// Turns, tool calls and waits for a human as bars over time, parallel ones side by side, drawn on a canvas.
//
// A click, or Enter on a bar reached with the arrow keys, goes to its event. What a bar is stands in words below.

import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";

import { span } from "../format.js";
import { layOut, timeStep } from "../lanes.js";
import { short, subtree } from "../look.js";

const LANE = 16;
const AXIS = 20;
const NAMES = 130;
const COLOURS = { turn: "--accent", call: "--good", human: "--calm" };

export function Timeline({ view, now, chosen, pick }) {
  const canvas = useRef(null);
  const [zoom, setZoom] = useState(1);
  const [until, setUntil] = useState(null);
  const [at, setAt] = useState(-1);
  const [, draw] = useReducer((count) => count + 1, 0);
  const actors = subtree(view, view.root).map((actor) => actor.path);
  const { rows, placed, lanes } = layOut(view.bars, actors);
  const begin = view.startedAt;
  const whole = Math.max(0.5, (view.report ? view.at : now) - begin);
  const seconds = whole / zoom;
  const end = Math.min(begin + whole, Math.max(begin + seconds, until ?? begin + whole));
  const start = end - seconds;

  useEffect(() => {
    const sized = new ResizeObserver(draw);
    sized.observe(canvas.current.parentElement);
    return () => sized.disconnect();
  }, []);

  const place = useRef(null);
  useLayoutEffect(() => {
    const width = canvas.current.parentElement.clientWidth;
    const height = AXIS + lanes * LANE + rows.length * 4;
    const names = Math.min(NAMES, width / 3);
    place.current = { names, scale: (width - names - 8) / seconds, start, tops: rows.map((row, index) => AXIS + row.top * LANE + index * 4) };
    paint(canvas.current, { width, height, rows, placed, now, seconds, chosen, marked: placed[at]?.bar, ...place.current });
  });

  const boxOf = ({ bar, lane }) => {
    const { names, scale, tops } = place.current;
    const row = rows.findIndex((each) => each.path === bar.actor);
    return { x: names + (bar.from - start) * scale, y: tops[row] + (lane - rows[row].top) * LANE, to: names + ((bar.to ?? now) - start) * scale };
  };
  const hit = (event) => {
    if (!canvas.current) return -1;
    const area = canvas.current.getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    return placed.findLastIndex((each) => {
      const box = boxOf(each);
      return y >= box.y && y < box.y + LANE && x >= box.x - 1 && x <= Math.max(box.to, box.x + 3);
    });
  };
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) setAt(Math.max(0, Math.min(placed.length - 1, at + step)));
    else if (event.key === "Enter" && placed[at]) pick(placed[at].bar.seq, placed[at].bar.actor);
    else return;
    event.preventDefault();
  };
  const pan = (direction) => setUntil(Math.max(begin + seconds, Math.min(begin + whole, end + (direction * seconds) / 2)));
  const bar = placed[at]?.bar;
  return html`<div class="timeline">
    <div class="tools">
      <button onClick=${() => setZoom(Math.min(4096, zoom * 2))} aria-label="zoom in">+</button>
      <button onClick=${() => setZoom(Math.max(1, zoom / 2))} disabled=${zoom === 1} aria-label="zoom out">−</button>
      <button onClick=${() => pan(-1)} disabled=${start <= begin + 0.001} aria-label="earlier">‹</button>
      <button onClick=${() => pan(1)} disabled=${end >= begin + whole - 0.001} aria-label="later">›</button>
      <span class="legend"><i class="turn"></i>turn <i class="tool"></i>tool call <i class="human"></i>waits for you <i class="wrong"></i>failed</span>
      <output aria-live="polite">${bar ? `${short(bar.actor)} · ${bar.label} · ${bar.to === null ? "goes on" : span(bar.to - bar.from)} · event ${bar.seq}` : ""}</output>
    </div>
    <div class="canvas"><canvas ref=${canvas} tabindex="0" role="img" aria-label=${`timeline: ${placed.length} turns, calls and waits of ${actors.length} actors; arrow keys go through them`}
      onMouseMove=${(event) => setAt(hit(event))} onClick=${(event) => { const index = hit(event); if (index >= 0) pick(placed[index].bar.seq, placed[index].bar.actor); }} onKeyDown=${key}></canvas></div>
  </div>`;
}

function paint(canvas, { width, height, rows, placed, now, seconds, chosen, marked, names, scale, start, tops }) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(name);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.strokeStyle = colour("--line");
  pen.fillStyle = colour("--dim");
  const step = timeStep(seconds, Math.max(2, (width - names) / 90));
  const begin = start;
  for (let mark = Math.ceil((start - begin) / step) * step; mark <= seconds; mark += step) {
    const x = Math.round(names + mark * scale) + 0.5;
    pen.beginPath();
    pen.moveTo(x, AXIS - 4);
    pen.lineTo(x, height);
    pen.stroke();
    if (x < width - 40) pen.fillText(`+${span(mark)}`, x + 3, AXIS / 2);
  }
  rows.forEach((row, index) => {
    if (row.path === chosen) {
      pen.fillStyle = colour("--lit");
      pen.fillRect(0, tops[index] - 1, width, row.lanes * LANE + 2);
    }
    pen.fillStyle = colour("--ink");
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, names - 6, height);
    pen.clip();
    pen.fillText(short(row.path), 8 + 10 * (row.path.split("/").length - 1), tops[index] + LANE / 2);
    pen.restore();
  });
  pen.save();
  pen.beginPath();
  pen.rect(names, 0, width - names, height);
  pen.clip();
  const index = new Map(rows.map((row, at) => [row.path, at]));
  for (const { bar, lane } of placed) {
    const row = index.get(bar.actor);
    const x = names + (bar.from - start) * scale;
    const wide = Math.max(2, ((bar.to ?? now) - bar.from) * scale - 0.5);
    if (x + wide < names || x > width) continue;
    const y = tops[row] + (lane - rows[row].top) * LANE + 1;
    pen.fillStyle = colour(bar.bad ? "--bad" : COLOURS[bar.kind]);
    pen.globalAlpha = bar.to === null ? 0.65 : 1;
    pen.fillRect(x, y, wide, LANE - 3);
    pen.globalAlpha = 1;
    if (bar === marked) {
      pen.strokeStyle = colour("--ink");
      pen.strokeRect(x - 0.5, y - 0.5, wide + 1, LANE - 2);
    }
    if (wide > 40) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, wide - 4, LANE);
      pen.clip();
      pen.fillStyle = colour("--on-accent");
      pen.fillText(bar.label, Math.max(x, names) + 4, y + LANE / 2 - 1);
      pen.restore();
    }
  }
  pen.restore();
}
