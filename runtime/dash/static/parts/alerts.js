// What the loop guard said, each with its evidence: the calls it compared, and what they returned.

import { html } from "htm/preact";

import { clock, oneLine } from "../format.js";
import { evidence, short } from "../look.js";
import { Text } from "./diff.js";

const WORDS = { "loop.nudged": "told the model", "loop.blocked": "blocked the call", "loop.stopped": "stopped the actor" };

export function Alerts({ view, pick }) {
  if (!view.alerts.length && !view.warnings.length) return html`<p class="dim">The loop guard has had nothing to say.</p>`;
  return html`<div class="alerts">
    ${view.alerts.map((alert) => html`<section class=${`card alert ${alert.type.slice(5)}`} key=${alert.seq}>
      <h3>${short(alert.actor)} · ${alert.why}</h3>
      <div class="facts">${clock(alert.at)} · ${WORDS[alert.type]}${alert.times ? ` · ${alert.times} times` : ""}${alert.kind ? ` · ${alert.kind}` : ""}
        <button class="quiet more" onClick=${() => pick(alert.seq, alert.actor)}>event ${alert.seq}</button></div>
      ${alert.note && html`<${Text} text=${alert.note} />`}
      <${Evidence} alert=${alert} calls=${evidence(view, alert)} pick=${pick} />
    </section>`)}
    ${view.warnings.map((each) => html`<section class="card" key=${`w${each.seq}`}><div class="facts warn">warning · ${clock(each.at)}</div><${Text} text=${each.text} /></section>`)}
  </div>`;
}

function Evidence({ alert, calls, pick }) {
  if (!calls.length) return html`<ul class="evidence">${alert.about.map((text) => html`<li><code>${text}</code></li>`)}</ul>`;
  return html`<details><summary>the evidence: ${calls.length} ${calls.length === 1 ? "call" : "calls"} with results</summary>
    <ol class="evidence">${calls.map((item) => html`<li key=${item.seq}>
      <button class="quiet more" onClick=${() => pick(item.seq, item.actor)}>event ${item.seq}</button>
      <code>${item.call.name} ${oneLine(JSON.stringify(item.call.arguments), 300)}</code>
      <div class="dim"><code>${item.call.result === undefined ? "no result" : oneLine(item.call.result, 300)}</code></div></li>`)}</ol></details>`;
}
