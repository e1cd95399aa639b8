// The page Run: one run, live or past: who works and who waits, what was said and done, and the ways to steer it.

import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { command, download } from "../api.js";
import { cost, count, oneLine, span } from "../format.js";
import { clock, doing, held, openAsks, phase, short, subtree, totals, waitsFor } from "../look.js";
import { Alerts } from "../parts/alerts.js";
import { Asks } from "../parts/asks.js";
import { Budgets } from "../parts/budgets.js";
import { Conversation } from "../parts/conversation.js";
import { Text } from "../parts/diff.js";
import { Events } from "../parts/events.js";
import { Problem } from "../parts/problem.js";
import { Scrub } from "../parts/scrub.js";
import { Sequence } from "../parts/sequence.js";
import { Steer } from "../parts/steer.js";
import { useRun } from "../parts/store.js";
import { Timeline } from "../parts/timeline.js";
import { Tree } from "../parts/tree.js";

const TABS = ["Conversation", "Timeline", "Messages", "Alerts", "Events"];
const RESUMABLE = ["waiting", "interrupted", "forked", "stopped"];

export default function RunPage({ rest: id }) {
  const { run, lookAt } = useRun(id);
  const { view } = run;
  const [tab, setTab] = useState("Conversation");
  const [chosen, setChosen] = useState(null);
  const [everybody, setEverybody] = useState(false);
  const [reveal, setReveal] = useState(0);
  const [said, setSaid] = useState({ text: "", bad: false });
  const state = run.reached ? phase(view, run.owned || Boolean(run.past)) : "reading";
  const actor = view.actors.get(chosen) ?? view.actors.get(view.root);

  useEffect(() => {
    document.title = `${id} ${state} · Elenco`;
  }, [id, state]);

  const send = async (body) => {
    try {
      const answer = await command(id, body);
      setSaid({ text: answer.recorded ? `recorded: it counts when the run goes on (elenco resume ${id})` : `${body.op}: done`, bad: false });
      return true;
    } catch (error) {
      setSaid({ text: error.message, bad: true });
      return false;
    }
  };
  const pick = (seq, path) => {
    setChosen(path);
    setTab("Conversation");
    setReveal(seq);
  };
  useKeys({ run, view, actor, setChosen, setTab, lookAt });

  if (run.connection && !run.now.seq) return html`<h1>${id}</h1><${Problem} text=${run.connection} again=${run.over && (() => location.reload())} />`;
  if (!view.seq) return html`<h1>${id}</h1><p class="dim">${run.reached ? "nothing is on record yet" : "reading"}</p>`;
  const steering = !run.past && !run.now.report && !run.over ? send : null;
  return html`<div class="run">
    <${Head} id=${id} view=${view} state=${state} run=${run} send=${steering} say=${setSaid} />
    <${Scrub} view=${view} last=${run.now.seq} past=${run.past} lookAt=${lookAt} />
    <p class=${`said ${said.bad ? "problem" : ""}`} role="status">${said.text}${said.text && html` <button class="quiet" aria-label="dismiss" onClick=${() => setSaid({ text: "", bad: false })}>×</button>`}</p>
    <${Asks} asks=${openAsks(view)} now=${run.past ? view.at : Date.now() / 1000} send=${steering} />
    <div class="columns">
      <aside>
        <${Tree} view=${view} chosen=${actor?.path} choose=${setChosen} />
        ${actor && html`<${Actor} key=${actor.path} view=${view} actor=${actor} run=${run} send=${steering && actor.status === "running" ? steering : null} />`}
      </aside>
      <section class="main card">
        <div class="tabs" role="tablist">${TABS.map((name) => html`<button role="tab" aria-selected=${name === tab} onClick=${() => setTab(name)}>${name}${badge(name, view)}</button>`)}
          ${tab === "Conversation" && html`<label class="check"><input type="checkbox" checked=${everybody} onChange=${(event) => setEverybody(event.target.checked)} /> everybody</label>`}
        </div>
        <div class="pane" role="tabpanel" aria-label=${tab}>
          ${tab === "Conversation" && html`<${Conversation} key=${everybody ? "" : actor?.path} view=${view} run=${id} actor=${everybody ? null : actor?.path} reveal=${reveal} />`}
          ${tab === "Timeline" && html`<${Timeline} view=${view} now=${run.clock} chosen=${actor?.path} pick=${pick} />`}
          ${tab === "Messages" && html`<${Sequence} view=${view} pick=${pick} />`}
          ${tab === "Alerts" && html`<${Alerts} view=${view} pick=${pick} />`}
          ${tab === "Events" && html`<${Events} events=${run.events} until=${view.seq} pick=${lookAt} />`}
        </div>
      </section>
    </div>
  </div>`;
}

function badge(name, view) {
  const number = { Alerts: view.alerts.length, Messages: view.messages.length, Events: view.seq }[name];
  return number ? html` <span class="dim">${count(number)}</span>` : null;
}

function Head({ id, view, state, run, send, say }) {
  const used = totals(view.actors.values());
  const root = view.actors.get(view.root);
  const seconds = root ? clock(view, root, run.clock) : 0;
  const [sure, setSure] = useState(false);
  const cancel = () => {
    setSure(false);
    send({ op: "cancel" });
  };
  const save = (format, ending) => download(`/api/runs/${encodeURIComponent(id)}/export?format=${format}`, `${id}.${ending}`).catch((error) => say({ text: error.message, bad: true }));
  return html`<div class="head">
    <h1><span class=${`state ${state}`}>${state}${view.report?.reason ? `: ${view.report.reason}` : ""}</span> ${id} <small>${oneLine(view.started?.task, 160)}</small></h1>
    <div class="facts">
      ${view.started?.agent} · ${view.started?.model} · ${used.steps} steps · ${count(used.input + used.output)} tokens${used.cached ? ` (${count(used.cached)} cached)` : ""} · ${used.cost === null ? "cost unknown" : cost(used.cost)} · ${span(seconds)}
      ${run.connection && html` · <b class="warn">${run.connection}</b>`}
      ${view.lost > 0 && html` · <span class="warn" title="live pieces this page was too slow for; every kept event is here">${count(view.lost)} live pieces passed over</span>`}
      ${run.past && html` · <b class="warn">as it was after event ${view.seq}</b>`}
    </div>
    <div class="buttons">
      ${send && (held(view, view.root) ? html`<button onClick=${() => send({ op: "continue" })}>Continue run</button>` : html`<button onClick=${() => send({ op: "hold" })}>Hold run</button>`)}
      ${send && (sure ? html`<button class="bad" onClick=${cancel}>Yes, cancel the run</button><button onClick=${() => setSure(false)}>No</button>`
        : html`<button class="bad" onClick=${() => setSure(true)}>Cancel run</button>`)}
      ${!run.owned && !run.over && RESUMABLE.includes(state) && html`<code>elenco resume ${id}</code>`}
      <button onClick=${() => save("jsonl", "jsonl")} title="every event; elenco import takes it in">Export events</button>
      <button onClick=${() => save("md", "md")} title="a page to read">Export page</button>
    </div>
  </div>`;
}

function Actor({ view, actor, run, send }) {
  const own = totals([actor]);
  const below = totals(subtree(view, actor.path));
  const waits = waitsFor(view, actor);
  return html`<div class="card actor">
    <h2>${short(actor.path)} <small class="dim">${actor.agent} · ${actor.model}</small></h2>
    <div class="facts"><span class=${`state ${doing(view, actor)}`}>${doing(view, actor)}</span>${actor.report?.reason ? ` ${actor.report.reason}` : ""}${actor.cancel ? ` · cancelled by ${actor.cancel}` : ""}</div>
    ${waits.map((each) => html`<div class="facts">waits for ${each.text}, ${span(Math.max(0, run.clock - each.since))}</div>`)}
    <div class="facts">${own.steps} steps · ${own.toolCalls} calls · ${count(own.input)} in, ${count(own.output)} out · ${own.cost === null ? "cost unknown" : cost(own.cost)}${actor.children.length ? ` · with all below: ${below.steps} steps, ${count(below.input + below.output)} tokens` : ""}</div>
    <${Budgets} view=${view} actor=${actor} now=${run.clock} />
    ${actor.notes.length > 0 && html`<details open><summary>notes (${actor.notes.length})</summary><ul>${actor.notes.map((note) => html`<li>${note.done ? "✓ " : ""}${note.text ?? JSON.stringify(note)}</li>`)}</ul></details>`}
    ${actor.skills.length > 0 && html`<div class="facts">skills: ${actor.skills.join(", ")}</div>`}
    <details><summary>task</summary><${Text} text=${actor.task} most=${20} /></details>
    <details><summary>prompt and ${actor.tools.length} tools</summary><${Text} text=${actor.prompt.join("\n")} most=${20} /><div class="facts">${actor.tools.map((tool) => tool.name ?? tool.function?.name).join(", ")}</div></details>
    ${send && html`<${Steer} view=${view} actor=${actor} send=${send} />`}
  </div>`;
}

/** j and k go through the actors, 1 to 5 through the views, [ and ] through time, Escape to now, a to what waits. */
function useKeys(now) {
  const latest = useRef(now);
  latest.current = now;
  useEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      const { run, view, actor, setChosen, setTab, lookAt } = latest.current;
      const paths = subtree(view, view.root).map((each) => each.path);
      const index = paths.indexOf(actor?.path);
      const to = (step) => setChosen(paths[Math.max(0, Math.min(paths.length - 1, index + step))]);
      if (event.key === "j") to(1);
      else if (event.key === "k") to(-1);
      else if (/^[1-5]$/.test(event.key)) setTab(TABS[Number(event.key) - 1]);
      else if (event.key === "[") lookAt(Math.max(1, view.seq - 1));
      else if (event.key === "]" && run.past) lookAt(view.seq + 1);
      else if (event.key === "Escape") lookAt(null);
      else if (event.key === "a") document.querySelector(".ask button")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
