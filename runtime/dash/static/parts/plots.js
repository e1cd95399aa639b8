// Tokens and cost by day, agent and model: bars, and the same numbers as a table.

import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { get } from "../api.js";
import { cost, count } from "../format.js";
import { lastDays, layOut, MEASURES, stacked } from "../spending.js";
import { useAgain } from "./again.js";
import { Problem } from "./problem.js";

const COLOURS = ["--accent", "--good", "--calm", "--warn", "--bad", "--dim"];
const HEIGHT = 170;
const AGAIN = 30_000;
const SPANS = [7, 30, 90];

function today() {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

export function Plots() {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const [chosen, setChosen] = useState({ measure: "tokens", by: "model", span: 30 });
  const look = () => get(`/api/usage?offset=${-new Date().getTimezoneOffset()}`).then(
    (answer) => { setFound(answer); setProblem(""); },
    (error) => setProblem(error.message),
  );
  useAgain(look, AGAIN);
  if (problem) return html`<${Problem} text=${problem} again=${look} />`;
  if (!found?.rows.length) return null;
  const days = lastDays(today(), chosen.span);
  const laid = layOut(found.rows, { ...chosen, days });
  const damaged = Object.keys(found.damaged);
  const set = (name, value) => setChosen({ ...chosen, [name]: value });
  return html`<section class="card plots" aria-label="what was spent">
    <div class="buttons">
      <h2>Spent</h2>
      <${Choice} label="what" all=${Object.keys(MEASURES)} value=${chosen.measure} choose=${(value) => set("measure", value)} />
      <${Choice} label="by" all=${["model", "agent", ""]} names=${{ "": "all" }} value=${chosen.by} choose=${(value) => set("by", value)} />
      <${Choice} label="days" all=${SPANS} names=${{ 7: "7 days", 30: "30 days", 90: "90 days" }} value=${chosen.span} choose=${(value) => set("span", value)} />
      ${chosen.measure === "cost" && laid.unpriced > 0 && html`<span class="warn">${count(laid.unpriced)} calls of unknown cost are not in it</span>`}
      ${damaged.length > 0 && html`<span class="warn">cannot be read: ${damaged.join(", ")}</span>`}
    </div>
    <div class="beside">
      <${Bars} laid=${laid} measure=${chosen.measure} />
      <${Table} laid=${laid} measure=${chosen.measure} by=${chosen.by} />
    </div>
  </section>`;
}

function Choice({ label, all, names = {}, value, choose }) {
  return html`<span class="choice" role="group" aria-label=${label}>${all.map((each) => html`<button aria-pressed=${each === value}
    onClick=${() => choose(each)}>${names[each] ?? each}</button>`)}</span>`;
}

export function shown(measure, value) {
  return measure === "cost" ? cost(value) : count(value);
}

/** Counts redraws that the colours or the width ask for. */
function useSurroundings(box) {
  const [seen, setSeen] = useState(0);
  useEffect(() => {
    const again = () => setSeen((number) => number + 1);
    const sized = new ResizeObserver(again);
    sized.observe(box.current);
    const themed = new MutationObserver(again);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", again);
    return () => {
      sized.disconnect();
      themed.disconnect();
      scheme.removeEventListener("change", again);
    };
  }, []);
  return seen;
}

function Bars({ laid, measure }) {
  const box = useRef(null);
  const seen = useSurroundings(box);
  const { days, groups } = laid;
  const told = JSON.stringify([days[0], days.length, groups, measure]);
  useLayoutEffect(() => {
    const style = getComputedStyle(box.current);
    const colour = (name) => style.getPropertyValue(name).trim();
    const sums = stacked(groups);
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const bars = uPlot.paths.bars({ size: [0.7, 40] });
    const plot = new uPlot({
      width: Math.max(200, box.current.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, range: [-0.6, days.length - 0.4] }, y: { range: (self, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        { ...axis, size: 26, grid: { show: false }, incrs: [1, 7, 14, 30], values: (self, marks) => marks.map((at) => days[at]?.slice(5) ?? "") },
        { ...axis, size: 58, values: (self, marks) => marks.map((value) => shown(measure, value)) },
      ],
      series: [{}, ...groups.map((group, index) => ({ fill: colour(COLOURS[index % COLOURS.length]), stroke: colour(COLOURS[index % COLOURS.length]), width: 0, paths: bars, points: { show: false } })).reverse()],
    }, [days.map((_, index) => index), ...sums.slice().reverse()], box.current);
    return () => plot.destroy();
  }, [told, seen]);
  const words = `${measure} by day, ${days[0]} to ${days.at(-1)}; the table beside it has the numbers`;
  return html`<div><div class="plot" ref=${box} role="img" aria-label=${words}></div>
    <div class="legend">${groups.map((group, index) => html`<span key=${group.name}><i class=${`colour${index % COLOURS.length}`}></i>${group.name || "unknown"}</span>`)}</div></div>`;
}

function Table({ laid, measure, by }) {
  const { days, groups } = laid;
  const used = days.map((day, index) => ({ day, index })).filter(({ index }) => groups.some((group) => group.values[index])).reverse();
  const total = groups.reduce((sum, group) => sum + group.total, 0);
  const several = groups.length > 1;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${`${measure} as a table`}><table class="spent">
    <thead><tr><th>Day</th>${groups.map((group) => html`<th class="number" title=${`${by || ""} ${group.name}`}>${group.name || "unknown"}</th>`)}${several && html`<th class="number">all</th>`}</tr></thead>
    <tbody>${used.map(({ day, index }) => html`<tr key=${day}><th scope="row">${day}</th>${groups.map((group) => html`<td class="number">${group.values[index] ? shown(measure, group.values[index]) : "–"}</td>`)}
      ${several && html`<td class="number">${shown(measure, groups.reduce((sum, group) => sum + group.values[index], 0))}</td>`}</tr>`)}</tbody>
    <tfoot><tr><th scope="row">together</th>${groups.map((group) => html`<td class="number">${shown(measure, group.total)}</td>`)}${several && html`<td class="number">${shown(measure, total)}</td>`}</tr></tfoot>
  </table></div>`;
}
