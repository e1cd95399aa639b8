// The limits an actor works under as bars: its own, then those it has from above.

import { html } from "htm/preact";

import { amount, limitName } from "../format.js";
import { budgets, short } from "../look.js";

export function Budgets({ view, actor, now }) {
  const all = budgets(view, actor, now);
  const own = all.filter((each) => !each.inherited);
  const above = all.filter((each) => each.inherited);
  if (!all.length) return html`<p class="dim">no limits</p>`;
  return html`<div class="budgets">
    ${own.map((each) => html`<${Bar} key=${each.limit} ...${each} />`)}
    ${above.length > 0 && html`<h4>from above</h4>`}
    ${above.map((each) => html`<${Bar} key=${each.scope + each.limit} ...${each} />`)}
  </div>`;
}

function Bar({ limit, scope, used, reserved, of, source, inherited }) {
  const part = (value) => `${of > 0 ? Math.min(100, (100 * value) / of) : 100}%`;
  const share = of > 0 ? (used ?? 0) / of : 1;
  const name = `${limitName(limit)}${inherited ? ` of ${short(scope)}` : ""}`;
  const text = `${amount(limit, used)} of ${amount(limit, of)}`;
  const state = share >= 1 ? "full" : share >= 0.8 ? "near" : "";
  return html`<div class="budget" title=${source && `set by: ${source}`}>
    <span class="name">${name}</span><span class="amount">${text}</span>
    <div class=${`bar ${state}`} role="meter" aria-label=${name} aria-valuemin="0" aria-valuemax=${of} aria-valuenow=${used ?? 0} aria-valuetext=${text}>
      <i style=${{ width: part(used ?? 0) }}></i>${reserved > 0 && html`<i class="reserved" style=${{ width: part(reserved) }}></i>`}
    </div>
  </div>`;
}
