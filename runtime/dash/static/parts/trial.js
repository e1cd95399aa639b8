// A run of the playground under three glasses: the request, the tool call, the loop.

import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { get } from "../api.js";
import { clock, cost, count, oneLine, span } from "../format.js";
import { doing, openAsks, phase, short, subtree, totals, waitsFor } from "../look.js";
import { Asks } from "./asks.js";
import { Budgets } from "./budgets.js";
import { Text } from "./diff.js";
import { useRun } from "./store.js";

const ENDS = { ok: "done", error: "an error", refused: "refused", interrupted: "interrupted", unknown: "nobody knows whether it took effect" };

/** `send(id, command)` carries a command out. */
export function Trial({ id, send }) {
  const { run } = useRun(id);
  const { view } = run;
  const state = phase(view, run.owned);
  const box = useRef(null);
  useEffect(() => { box.current?.scrollIntoView({ block: "nearest" }); }, [Boolean(view.seq)]);
  if (!view.seq) return html`<p class="dim">${run.connection || "the run begins"}</p>`;
  const steering = view.report || run.over ? null : (command) => send(id, command);
  const used = totals(view.actors.values());
  return html`<div class="trial" ref=${box}>
    <p><span class=${`state ${state}`} data-run=${id}>${state}${view.report?.reason ? `: ${view.report.reason}` : ""}</span> <a href=${`#/run/${id}`}>run ${id}</a>
      <span class="facts"> ${used.steps} steps · ${count(used.input + used.output)} tokens · ${used.cost === null ? "cost unknown" : cost(used.cost)}</span>
      ${run.connection && html` <b class="warn">${run.connection}</b>`}
      ${steering && run.owned && html` <button class="bad" onClick=${() => steering({ op: "cancel" })}>Cancel</button>`}</p>
    <${Asks} asks=${openAsks(view)} now=${Date.now() / 1000} send=${steering} />
    <div class="panes">
      <${Requests} id=${id} run=${run} />
      <${Calls} view=${view} />
      <${Loop} view=${view} now=${run.clock} />
    </div>
  </div>`;
}

/** Which of a list is looked at: the newest, until another is chosen. */
function useChoice(number) {
  const [chosen, setChosen] = useState(null);
  return [chosen === null || chosen >= number ? number - 1 : chosen, (index) => setChosen(index >= number - 1 ? null : index)];
}

function Step({ what, at, number, go }) {
  return html`<div class="buttons"><button onClick=${() => go(at - 1)} disabled=${at <= 0} aria-label=${`${what} before`}>‹</button>
    <span class="dim">${number ? `${at + 1} of ${number}` : "none yet"}</span>
    <button onClick=${() => go(at + 1)} disabled=${at >= number - 1} aria-label=${`next ${what}`}>›</button></div>`;
}

function Requests({ id, run }) {
  const asked = run.events.filter((event) => event.type === "model.requested");
  const [at, go] = useChoice(asked.length);
  const [found, setFound] = useState(null);
  const [sent, setSent] = useState([]);
  const [wire, setWire] = useState(false);
  const seq = asked[at]?.seq;
  useEffect(() => {
    let gone = false;
    const failed = (error) => gone || setFound({ seq, problem: error.message });
    if (seq) get(`/api/playground/runs/${id}/requests/${seq}`).then((answer) => gone || setFound({ ...answer, seq }), failed);
    return () => { gone = true; };
  }, [seq]);
  const answered = run.events.reduce((sum, event) => sum + (event.type === "model.finished" || event.type === "model.retried"), 0);
  useEffect(() => {
    let gone = false;
    get(`/api/playground/runs/${id}/exchanges`).then((answer) => gone || setSent(answer.exchanges), () => {});
    return () => { gone = true; };
  }, [answered]);
  return html`<section class="card" aria-label="the request"><div class="buttons"><h2>The request</h2>
      ${wire ? "" : html`<${Step} what="request" at=${at} number=${asked.length} go=${go} />`}
      ${sent.length > 0 && html`<label class="check"><input type="checkbox" checked=${wire} onChange=${(event) => setWire(event.target.checked)} /> as sent (${sent.length})</label>`}</div>
    ${wire ? sent.map((each) => html`<${Sent} key=${each.name} sent=${each} />`) : seq && found?.seq === seq && html`<${Request} found=${found} event=${asked[at]} />`}
  </section>`;
}

function Sent({ sent }) {
  return html`<details><summary>${sent.name} · ${sent.wire} · answered ${sent.status}</summary>
    <p class="facts">the body as it went out, keys taken out</p><${Text} text=${JSON.stringify(sent.request, null, 2)} most=${40} diff=${false} /></details>`;
}

function Request({ found, event }) {
  if (found.problem) return html`<p class="problem">${found.problem}</p>`;
  return html`<div class="request">
    <p class="facts">${short(found.actor)} · turn ${event.turn + 1}${event.purpose === "turn" ? "" : ` (${event.purpose})`} · ${found.model} · about ${count(event.estimate)} tokens, at most ${count(found.max_output_tokens)} back</p>
    <details><summary>system prompt, ${count(found.system.join("").length)} characters</summary><pre>${found.system.join("\n\n")}</pre></details>
    <details><summary>${found.tools.length} tools: ${found.tools.map((tool) => tool.name).join(", ")}</summary><pre>${JSON.stringify(found.tools, null, 2)}</pre></details>
    <ol class="messages">${found.messages.map((message, index) => html`<li key=${index}><b>${message.role}</b> <${Message} message=${message} /></li>`)}</ol>
  </div>`;
}

/** What a message says, part for part: text, reasoning, calls, results; what is none of these stands as JSON. */
function Message({ message }) {
  if (typeof message.text === "string" && !message.parts) return html`<${Text} text=${message.text} most=${6} diff=${false} />`;
  const parts = message.parts ?? message.results ?? [message];
  return parts.map((part) => html`<${Part} part=${part} />`);
}

function Part({ part }) {
  if (part.type === "text") return html`<${Text} text=${part.text} most=${6} diff=${false} />`;
  if (part.type === "reasoning") return html`<details><summary>reasoning</summary><pre>${part.text}</pre></details>`;
  if (part.type === "call") return html`<div><b class="mono">${part.name}</b> <code>${oneLine(JSON.stringify(part.arguments), 200)}</code></div>`;
  if (typeof part.content === "string") return html`<div class="result"><span class="facts">${part.name}${part.is_error ? ", an error" : ""}</span><${Text} text=${part.content} most=${6} /></div>`;
  return html`<${Text} text=${JSON.stringify(part, null, 2)} most=${6} diff=${false} />`;
}

function Calls({ view }) {
  const all = view.items.filter((item) => item.kind === "call");
  const [at, go] = useChoice(all.length);
  const item = all[at];
  return html`<section class="card" aria-label="the tool call"><div class="buttons"><h2>The tool call</h2><${Step} what="call" at=${at} number=${all.length} go=${go} /></div>
    ${item && html`<${Call} call=${item.call} actor=${item.actor} at=${item.at} />`}</section>`;
}

function Call({ call, actor, at }) {
  const decided = call.decision && `${call.decision.decision === "allow" ? "approved" : "denied"} by ${call.decision.by}${call.decision.why ? `: ${call.decision.why}` : ""}`;
  return html`<div>
    <p><b class="mono">${call.name}</b> <span class="facts">${short(actor)} · ${clock(at)}</span></p>
    <h3>arguments</h3><${Text} text=${call.argumentsError ?? JSON.stringify(call.edited ?? call.arguments, null, 2)} most=${12} diff=${false} />
    <h3>decision</h3><p>${call.verdict ? html`${call.verdict} <span class="dim">${call.rule || call.by}</span>` : "not yet"}${decided && html`<br />${decided}`}</p>
    <h3>result</h3><p class=${call.isError ? "warn" : "facts"}>${call.state === "done" ? `${ENDS[call.ended] ?? "done"}${call.seconds === undefined ? "" : `, ${span(call.seconds)}`}` : call.state === "running" ? "at work" : "waits"}</p>
    ${call.state === "running" && call.output && html`<pre class="output">${call.output}</pre>`}
    ${call.result !== undefined && html`<${Text} text=${call.result} most=${12} />`}
    ${call.diffs.map((each) => html`<div><div class="facts">${each.path}</div><${Text} text=${each.diff} diff most=${12} /></div>`)}
  </div>`;
}

function Loop({ view, now }) {
  const all = subtree(view, view.root);
  const root = all[0];
  if (!root) return html`<section class="card" aria-label="the loop"><h2>The loop</h2></section>`;
  const replies = view.items.filter((item) => item.kind === "reply" || item.kind === "trouble" || item.kind === "alert" || item.kind === "note");
  return html`<section class="card" aria-label="the loop"><h2>The loop</h2>
    ${all.map((actor) => html`<p key=${actor.path}><b>${short(actor.path)}</b> <span class=${`state ${doing(view, actor)}`}>${doing(view, actor)}</span>
      <span class="facts"> ${actor.steps} steps${waitsFor(view, actor).map((each) => ` · waits for ${each.text}`)}</span></p>`)}
    <${Budgets} view=${view} actor=${root} now=${now} />
    <h3>loop guard</h3>
    ${view.alerts.length ? view.alerts.map((alert) => html`<p key=${alert.seq} class="warn">${alert.type.slice(5)} · ${short(alert.actor)}: ${alert.why}</p>`)
      : html`<p class="facts">${view.items.some((item) => item.kind === "call") ? "nothing repeats itself" : "no call to compare yet"}</p>`}
    <h3>turns</h3>
    <ul class="turns">${replies.map((item) => html`<li key=${`${item.kind}${item.seq}`}><${Turn} item=${item} /></li>`)}
      ${all.filter((actor) => actor.turn.length).map((actor) => html`<li class="live"><span class="facts">${short(actor.path)} is writing</span>${actor.turn.map((piece) => html`<pre class=${piece.kind === "text" ? "" : "dim"}>${piece.text.slice(-2000)}</pre>`)}</li>`)}</ul>
    ${view.report && html`<h3>end</h3><p><span class=${`state ${view.report.status}`}>${view.report.status}${view.report.reason ? `: ${view.report.reason}` : ""}</span> <span class="facts">${view.report.detail}</span></p><${Text} text=${view.report.text} most=${20} diff=${false} />`}
  </section>`;
}

function Turn({ item }) {
  if (item.kind === "trouble") return html`<span class="warn">${item.text}</span>${item.detail && html`<${Text} text=${item.detail} />`}`;
  if (item.kind === "alert") return html`<span class="warn">loop ${item.alert.type.slice(5)}: ${item.alert.why}</span>`;
  if (item.kind === "note") return html`<span class="facts">the runtime said (${item.why})</span><${Text} text=${item.text} />`;
  return html`<span class="facts">${short(item.actor)} · ${item.purpose === "turn" ? `turn ${item.turn + 1}` : item.purpose} · ${item.finish} · ${count(item.usage.input ?? 0)} in, ${count(item.usage.output ?? 0)} out · ${span(item.seconds)}</span>
    ${item.text && html`<${Text} text=${item.text} most=${4} diff=${false} />`}`;
}
