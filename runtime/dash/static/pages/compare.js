// The page Compare: two runs side by side, what they were given, what each actor did, where they part, how they end.

import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";

import { get } from "../api.js";
import { ago, cost, count, limitName, oneLine, span } from "../format.js";
import { short } from "../look.js";
import { useAgain } from "../parts/again.js";
import { Text } from "../parts/diff.js";
import { Problem } from "../parts/problem.js";

const MOST = 200;
const LIVE = 3000;
const SIDES = ["A", "B"];

export default function Compare({ rest }) {
  const [one, two] = rest.split("/");
  const [runs, setRuns] = useState([]);
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const look = () => get(`/api/compare/${encodeURIComponent(one)}/${encodeURIComponent(two)}`).then(
    (answer) => { setFound(answer); setProblem(""); },
    (error) => setProblem(error.message),
  );
  useEffect(() => {
    document.title = one && two ? `${one} and ${two} · Elenco` : "Compare · Elenco";
    get("/api/runs").then((answer) => setRuns(answer.runs), (error) => setProblem(error.message));
  }, [rest]);
  const wanted = found ? found.runs.some((run) => run.phase !== "ended") : one && two && !problem;
  useAgain(async () => wanted && look(), LIVE);
  useKeys();
  return html`<h1>Compare</h1>
    <${Choose} runs=${runs} one=${one} two=${two} />
    ${problem && html`<${Problem} text=${problem} again=${one && two ? look : undefined} />`}
    ${found && html`<${Both} found=${found} />`}`;
}

/** n and p go to the next and the previous difference. */
function useKeys() {
  useEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      if (event.key !== "n" && event.key !== "p") return;
      const all = [...document.querySelectorAll(".differs")];
      const at = all.indexOf(document.activeElement);
      const next = event.key === "n" ? all[at + 1] ?? all[0] : all[at - 1] ?? all.at(-1);
      next?.focus();
      next?.scrollIntoView({ block: "center" });
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function Choose({ runs, one = "", two = "" }) {
  const go = (first, second) => { location.hash = `#/compare/${first}/${second}`; };
  const pick = (name, value, change) => html`<label>${name} <select value=${value} onChange=${(event) => change(event.target.value)}>
    <option value="">choose a run</option>
    ${value && !runs.slice(0, MOST).some((run) => run.id === value) && html`<option value=${value}>${value}</option>`}
    ${runs.slice(0, MOST).map((run) => html`<option key=${run.id} value=${run.id}>${run.id} · ${run.state} · ${run.agent} · ${oneLine(run.task, 50)} · ${ago(run.ended ?? run.started, Date.now() / 1000)}</option>`)}
  </select></label>`;
  return html`<div class="buttons choose">
    ${pick("A", one, (value) => go(value, two))} ${pick("B", two, (value) => go(one, value))}
    <button onClick=${() => go(two, one)} disabled=${!one || !two}>Swap</button>
    ${one && two && html`<span class="dim">n and p go through the differences</span>`}
  </div>`;
}

function Both({ found }) {
  const seconds = Math.max(0.01, ...found.runs.map((run) => run.seconds));
  return html`<div class="compare">
    <div class="pair">${found.runs.map((run, index) => html`<${Head} key=${index} run=${run} side=${SIDES[index]} />`)}</div>
    <${Given} given=${found.given} />
    <section class="card"><h2>Over time</h2>
      <p class="facts">both on one scale of ${seconds < 1 ? `${Math.round(seconds * 1000)} ms` : span(seconds)}: turns above, tool calls below</p>
      ${found.actors.map((actor) => html`<${Lanes} key=${actor.path} actor=${actor} seconds=${seconds} />`)}
    </section>
    ${found.actors.map((actor) => html`<${Actor} key=${actor.path} actor=${actor} />`)}
    <section class="card"><h2>Answers</h2>
      ${found.answers.same ? html`<p class="good">the same, word for word</p>` : html`<div class="differs" tabindex="-1"><${Text} text=${found.answers.diff} diff most=${40} /></div>`}
      <div class="pair">${found.runs.map((run, index) => html`<div><h3>${SIDES[index]}</h3><${Text} text=${run.answer || "no answer yet"} most=${12} diff=${false} /></div>`)}</div>
    </section>
  </div>`;
}

function price(value) {
  return value === null ? "cost unknown" : cost(value);
}

function Head({ run, side }) {
  const state = run.status || run.phase;
  return html`<section class="card">
    <h2>${side} <a href=${`#/run/${run.id}`}>${run.id}</a> <span class=${`state ${state}`}>${state}${run.reason ? `: ${run.reason}` : ""}</span></h2>
    <p>${oneLine(run.task, 200)}</p>
    <div class="facts">${run.steps} steps · ${run.calls} calls · ${count(run.usage.input + run.usage.output)} tokens · ${price(run.cost_usd)} · ${span(run.seconds)}${run.alerts ? ` · ${run.alerts} loop alerts` : ""}${run.origin ? ` · from ${run.origin}` : ""}</div>
    ${run.detail && html`<div class="facts">${run.detail}</div>`}
  </section>`;
}

function said(value) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value !== "object") return String(value);
  return Object.entries(value).filter(([name]) => name !== "sources").map(([name, each]) => `${limitName(name)} ${typeof each === "object" ? JSON.stringify(each) : each}`).join(", ") || "–";
}

function Given({ given }) {
  return html`<section class="card scroll"><h2>What they were given</h2><table class="given"><thead><tr><th></th><th>A</th><th>B</th></tr></thead>
    <tbody>${given.map((row) => html`<tr key=${row.what} class=${row.same ? "" : "differs"} tabindex=${row.same ? undefined : "-1"}><th scope="row">${row.same ? "" : "≠ "}${row.what}</th>
      ${row.same ? html`<td colspan="2" class="dim">${said(row.values[0])}</td>` : row.values.map((value) => html`<td>${said(value)}</td>`)}</tr>`)}</tbody></table></section>`;
}

function Lanes({ actor, seconds }) {
  return html`<div class="lanes"><div class="name" title=${actor.path}>${short(actor.path)}</div>
    ${actor.sides.map((side, index) => html`<${Lane} key=${index} side=${side} calls=${actor.calls.map((row) => row.sides[index]).filter(Boolean)} name=${`${SIDES[index]}, ${short(actor.path)}`} letter=${SIDES[index]} seconds=${seconds} />`)}</div>`;
}

function Lane({ side, calls, name, letter, seconds }) {
  if (!side) return html`<div class="lane dim"><b>${letter}</b> took no part</div>`;
  const place = (from, to) => ({ x: `${(100 * from) / seconds}%`, width: `${Math.max(0.3, (100 * (to - from)) / seconds)}%` });
  const last = side.began_at + side.seconds;
  const words = `${name}: ${side.turns.length} turns, ${calls.length} calls in ${span(side.seconds)}`;
  return html`<div class="lane"><b>${letter}</b><svg role="img" aria-label=${words} height="30" width="100%">
    <rect class="life" y="14" height="1" ...${place(side.began_at, last)} />
    ${side.turns.map((turn, index) => html`<rect class="turn" y="1" height="12" ...${place(turn.began_at, turn.ended_at ?? last)}><title>turn ${index + 1}, ${span((turn.ended_at ?? last) - turn.began_at)}${turn.finish && turn.finish !== "stop" ? `, ${turn.finish}` : ""}</title></rect>`)}
    ${calls.map((call) => html`<rect class=${`call ${call.kind === "ok" || !call.kind ? "" : "wrong"}`} y="16" height="12" ...${place(call.started_at ?? call.asked_at, call.ended_at ?? last)}><title>${call.name}, ${span((call.ended_at ?? last) - (call.started_at ?? call.asked_at))}</title></rect>`)}
    ${side.alerts.map((alert) => html`<rect class="alert" y="0" height="30" ...${place(alert.at, alert.at)}><title>${alert.type}: ${alert.why}</title></rect>`)}
  </svg></div>`;
}

const ROWS = [
  ["model", (side) => side.model],
  ["end", (side) => `${side.status}${side.reason ? `: ${side.reason}` : ""}`],
  ["steps", (side) => side.steps],
  ["tokens in", (side) => count(side.usage.input)],
  ["tokens out", (side) => count(side.usage.output)],
  ["cached", (side) => count(side.usage.cached_input)],
  ["cost", (side) => price(side.cost_usd)],
  ["time", (side) => span(side.seconds)],
  ["loop alerts", (side) => side.alerts.length],
  ["tools", (side) => side.tools.join(", ")],
  ["limits", (side) => said(side.limits)],
];

function Actor({ actor }) {
  const parted = actor.calls.filter((row) => !row.same_call || !row.same_result).length;
  return html`<section class="card"><h2>${actor.path}</h2>
    <div class="scroll"><table class="given"><thead><tr><th></th><th>A</th><th>B</th></tr></thead><tbody>${ROWS.map(([name, tell]) => {
      const [first, second] = actor.sides.map((side) => (side ? tell(side) : "–"));
      return html`<tr key=${name} class=${first === second ? "" : "other"}><th scope="row">${name}</th><td>${first}</td><td>${second}</td></tr>`;
    })}</tbody></table></div>
    ${actor.prompt_diff && html`<details class="differs" tabindex="-1"><summary>their prompts differ</summary><${Text} text=${actor.prompt_diff} diff most=${40} /></details>`}
    ${actor.sides.map((side, index) => side?.alerts.map((alert) => html`<p class="facts warn">${SIDES[index]}: ${alert.type} · ${alert.why}</p>`))}
    ${actor.calls.length > 0 && html`<h3>Tool calls <span class="dim">${parted ? `${parted} of ${actor.calls.length} differ` : `all ${actor.calls.length} the same`}</span></h3>
      <ol class="calls">${actor.calls.map((row, index) => html`<${CallRow} key=${index} row=${row} />`)}</ol>`}
  </section>`;
}

function CallRow({ row }) {
  const [first, second] = row.sides;
  const mark = row.same_call ? (row.same_result ? "=" : "≈") : first ? "−" : "+";
  const words = { "=": "the same call and result", "≈": "the same call, another result", "−": "A alone", "+": "B alone" }[mark];
  return html`<li class=${`pairrow ${mark === "=" ? "" : "differs"}`} tabindex=${mark === "=" ? undefined : "-1"}>
    <span class="mark" title=${words} aria-label=${words}>${mark}</span>
    <${OneCall} call=${first} alone=${!second} /><${OneCall} call=${second} alone=${!first} />
  </li>`;
}

function OneCall({ call, alone }) {
  if (!call) return html`<div class="none"></div>`;
  const given = call.arguments === null ? "arguments that are no JSON" : JSON.stringify(call.arguments);
  return html`<details class=${alone ? "alone" : ""}><summary><b class="mono">${call.name}</b> <code>${oneLine(given, 120)}</code>${call.kind && call.kind !== "ok" ? html` <span class="warn">${call.kind}</span>` : ""}</summary>
    <${Text} text=${given} most=${6} diff=${false} /><div class="result"><${Text} text=${call.result || "no result"} most=${8} />${call.cut > 0 && html`<p class="dim">${count(call.cut)} more characters</p>`}</div></details>`;
}
