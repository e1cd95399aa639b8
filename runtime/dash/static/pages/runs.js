// The page Runs: every run of this machine, the live ones first, by state, agent and words.

import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";

import { get } from "../api.js";
import { ago, cost, count, oneLine } from "../format.js";
import { useAgain } from "../parts/again.js";
import { Plots } from "../parts/plots.js";
import { Problem } from "../parts/problem.js";
import { agentsOf, chosenRuns } from "../runlist.js";

const AGAIN = 2000;
const FIRST = 200;
const STATES = ["live", "waiting", "interrupted", "forked", "completed", "stopped", "failed", "cancelled", "newer", "damaged"];

export default function Runs() {
  const [runs, setRuns] = useState(null);
  const [problem, setProblem] = useState("");
  const [filter, setFilter] = useState({ state: "", agent: "", text: "" });
  const [most, setMost] = useState(FIRST);
  const look = async () => {
    try {
      setRuns((await get("/api/runs")).runs);
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
  };
  useAgain(look, AGAIN);
  useEffect(() => {
    document.title = "Runs · Elenco";
    const slash = (event) => {
      if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      event.preventDefault();
      document.getElementById("words")?.focus();
    };
    addEventListener("keydown", slash);
    return () => removeEventListener("keydown", slash);
  }, []);
  const shown = chosenRuns(runs ?? [], filter);
  const set = (name) => (event) => setFilter({ ...filter, [name]: event.target.value });
  return html`<h1>Runs</h1>
    ${problem && html`<${Problem} text=${problem} again=${look} />`}
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <input id="words" type="search" aria-label="words in the task, the name, the id or the model" placeholder="words ( / )" value=${filter.text} onInput=${set("text")} />
      <select aria-label="state" value=${filter.state} onChange=${set("state")}><option value="">every state</option>${STATES.map((name) => html`<option>${name}</option>`)}</select>
      <select aria-label="agent" value=${filter.agent} onChange=${set("agent")}><option value="">every agent</option>${agentsOf(runs ?? []).map((name) => html`<option>${name}</option>`)}</select>
      <span class="dim" role="status">${runs && `${shown.length} of ${runs.length}`}</span>
    </form>
    ${runs?.length === 0 && html`<p>No runs yet. Begin one in a terminal: <code>elenco run "What does this project do?"</code></p>`}
    ${runs?.length > 0 && html`<${Plots} />`}
    ${shown.length > 0 && html`<div class="scroll card"><table class="runs">
      <thead><tr><th>Run</th><th>State</th><th>Agent</th><th>Task</th><th class="number">Steps</th><th class="number">Tokens</th><th class="number">Cost</th><th>Model</th><th>When</th></tr></thead>
      <tbody>${shown.slice(0, most).map((run) => html`<${Row} key=${run.id} run=${run} />`)}</tbody>
    </table></div>`}
    ${shown.length > most && html`<button onClick=${() => setMost(most + FIRST)}>${shown.length - most} more</button>`}`;
}

function Row({ run }) {
  const word = run.waits_for.length ? `waiting: ${run.waits_for.join(", ")}` : run.problem ? `${run.state}: ${run.problem}` : run.reason ? `${run.state}: ${run.reason}` : run.state;
  return html`<tr class=${run.owned ? "live" : ""}>
    <td><a href=${`#/run/${run.id}`}>${run.id}</a>${run.name && html` <span class="dim">${run.name}</span>`}</td>
    <td><span class=${`state ${run.state}`}>${word}</span></td>
    <td>${run.agent}</td>
    <td class="task" title=${run.task}>${oneLine(run.task, 160)}</td>
    <td class="number">${run.steps}${run.max_steps ? `/${run.max_steps}` : ""}</td>
    <td class="number">${run.tokens ? count(run.tokens) : "–"}</td>
    <td class="number">${run.cost_usd === null ? (run.ended ? "unknown" : "–") : run.cost_usd ? cost(run.cost_usd) : "–"}</td>
    <td class="dim">${run.model}</td>
    <td class="dim" title=${new Date(run.started * 1000).toLocaleString()}>${ago(run.ended ?? run.started, Date.now() / 1000)}</td>
  </tr>`;
}
