// What actors said, called and got, in order: reasoning folded, results cut to three lines, changes as diffs.

import { html } from "htm/preact";
import { useRef, useState } from "preact/hooks";

import { getText } from "../api.js";
import { clock, cost, count, span } from "../format.js";
import { short } from "../look.js";
import { Text } from "./diff.js";
import { Virtual } from "./virtual.js";

/** The conversation of one actor, or of all (`actor` null); `run` is the id that full results are fetched of. */
export function Conversation({ view, actor, run, reveal = 0 }) {
  const opened = useRef(new Set());
  const items = view.items.filter((item) => actor === null || item.actor === actor);
  for (const each of view.actors.values())
    if (each.turn.length && (actor === null || actor === each.path)) items.push({ kind: "live", actor: each.path, turn: each.turn });
  const index = reveal ? items.findIndex((item) => item.seq >= reveal) : -1;
  return html`<${Virtual} items=${items} keyOf=${keyOf} height=${90} stick reveal=${index} role="log" label="conversation"
    row=${(item) => html`<${Item} item=${item} run=${run} several=${actor === null} opened=${opened.current} />`} />`;
}

function keyOf(item) {
  return `${item.kind}.${item.seq}.${item.call?.id ?? item.actor}`;
}

function Item({ item, run, several, opened }) {
  const Body = BODIES[item.kind];
  return html`<article class=${`item ${item.kind}`}>
    <div class="margin">${several && html`<b>${short(item.actor)}</b>`}${item.at && html`<time title=${`event ${item.seq}`}>${clock(item.at)}</time>`}</div>
    <div class="body"><${Body} ...${item} run=${run} opened=${opened} /></div>
  </article>`;
}

/** Something folded that stays as it was left when its row goes out of sight and comes back. */
function Folded({ name, title, opened, children, className = "" }) {
  const toggle = (event) => (event.currentTarget.open ? opened.add(name) : opened.delete(name));
  return html`<details class=${className} open=${opened.has(name)} onToggle=${toggle}><summary>${title}</summary>${children}</details>`;
}

function Reply({ seq, text, reasoning, usage, cost: price, seconds, finish, purpose, turn, opened }) {
  const tokens = `${count(usage.input ?? 0)} in, ${count(usage.output ?? 0)} out${usage.estimated ? " (estimated)" : ""}`;
  return html`<div class="facts">${purpose === "turn" ? `turn ${turn + 1}` : purpose} · ${tokens} · ${price === null ? "cost unknown" : cost(price)} · ${span(seconds)}${finish === "stop" || finish === "tool_calls" ? "" : ` · ${finish}`}</div>
    ${reasoning && html`<${Folded} name=${`r${seq}`} className="reasoning" title=${`reasoning, ${count(reasoning.length)} characters`} opened=${opened}><pre>${reasoning}</pre><//>`}
    ${text && html`<pre class="said">${text}</pre>`}`;
}

function Live({ turn }) {
  return html`<div class="facts">is writing</div>${turn.map((piece) => piece.kind === "text"
    ? html`<pre class="said">${piece.text}</pre>`
    : html`<pre class="dim">${piece.kind === "reasoning" ? piece.text.slice(-600) : `call ${piece.index + 1}: ${piece.text.slice(-600)}`}</pre>`)}`;
}

function argumentsText(given) {
  if (!given) return "";
  const entries = Object.entries(given);
  if (entries.length === 1 && typeof entries[0][1] === "string") return entries[0][1];
  return entries.map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n");
}

const ENDS = { ok: "✓", error: "✗", refused: "⊘", interrupted: "⊘", unknown: "?" };

function Call({ call, run }) {
  const state = call.state === "done" ? ENDS[call.ended] ?? "✓" : call.state === "running" ? "…" : "○";
  const decided = call.decision
    ? `${call.decision.decision === "allow" ? "approved" : "denied"} by ${call.decision.by}${call.edited ? ", edited" : ""}${call.decision.why ? `: ${call.decision.why}` : ""}`
    : call.verdict && `${call.verdict}: ${call.rule || call.by}`;
  return html`<div class=${`call ${call.isError ? "bad" : ""}`}>
    <div class="facts"><b class="tool">${state} ${call.name}</b>${call.seconds !== undefined && ` · ${span(call.seconds)}`}${decided && ` · ${decided}`}${call.child && ` · ${short(call.child)}`}</div>
    <${Text} text=${argumentsText(call.edited ?? call.arguments)} />
    ${call.argumentsError && html`<p class="problem">${call.argumentsError}</p>`}
    ${call.diffs.map((each) => html`<div class="changed"><div class="facts">${each.path}</div><${Text} text=${each.diff} diff most=${12} /></div>`)}
    ${call.state === "running" && call.output && html`<pre class="output">${call.output.split("\n").slice(-4).join("\n")}</pre>`}
    ${call.result !== undefined && html`<div class="result"><${Text} text=${call.result} />${call.full && html`<${Full} run=${run} digest=${call.full} />`}</div>`}
  </div>`;
}

/** The whole of a result that was shortened for the model. */
function Full({ run, digest }) {
  const [text, setText] = useState(null);
  if (text !== null) return html`<${Text} text=${text} most=${40} />`;
  const fetched = () => getText(`/api/runs/${run}/blobs/${digest}`).then(setText, (error) => setText(error.message));
  return html`<button class="quiet more" onClick=${fetched}>the full text</button>`;
}

const BODIES = {
  task: ({ text, from }) => html`<div class="facts">task, from ${short(from)}</div><${Text} text=${text} most=${12} />`,
  message: ({ text, from }) => html`<div class="facts">message from ${short(from)}</div><${Text} text=${text} most=${12} />`,
  note: ({ seq, text, why, opened }) => html`<${Folded} name=${`n${seq}`} title=${why} opened=${opened}><pre>${text}</pre><//>`,
  reply: Reply,
  live: Live,
  call: Call,
  trouble: ({ text, detail }) => html`<div class="facts warn">${text}</div>${detail && html`<${Text} text=${detail} />`}`,
  alert: ({ alert }) => html`<div class="facts warn">! loop ${alert.type.slice(5)}: ${alert.why}</div>`,
  limits: ({ limits, by }) => html`<div class="facts">limits changed by ${by || "you"}: ${Object.entries(limits).filter(([name]) => name !== "sources").map(([name, value]) => `${name} ${value}`).join(", ")}</div>`,
  resumed: () => html`<div class="facts">the run goes on in another process</div>`,
  report: ({ report }) => html`<div class=${`facts ${report.status === "completed" ? "good" : "warn"}`}>${report.status}${report.reason ? `: ${report.reason}` : ""}${report.detail ? ` · ${report.detail}` : ""}</div>
    <${Text} text=${report.text} most=${12} />`,
};
