// The tree of actors: who works is lit, who waits says for whom.

import { html } from "htm/preact";

import { cost, count } from "../format.js";
import { active, doing, short, subtree, totals, waitsFor } from "../look.js";
import { Virtual } from "./virtual.js";

const MARKS = { thinking: "●", calling: "●", waiting: "◌", held: "‖", idle: "○", completed: "✓", stopped: "■", failed: "✗", cancelled: "⊘" };

export function Tree({ view, chosen, choose }) {
  const actors = subtree(view, view.root);
  const index = actors.findIndex((each) => each.path === chosen);
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = actors[Math.max(0, Math.min(actors.length - 1, index + step))];
    if (next) choose(next.path);
  };
  return html`<div class="tree" onKeyDown=${key} style=${{ height: `${Math.min(actors.length, 9) * 46 + 2}px` }}>
    <${Virtual} items=${actors} keyOf=${(actor) => actor.path} height=${46} fixed reveal=${index} label="actors"
      row=${(actor) => html`<${Node} view=${view} actor=${actor} chosen=${actor.path === chosen} choose=${choose} />`} />
  </div>`;
}

function Node({ view, actor, chosen, choose }) {
  const now = doing(view, actor);
  const waits = waitsFor(view, actor);
  const depth = actor.path.split("/").length - 1;
  const used = totals([actor]);
  const what = now === "calling" || now === "waiting" ? `${now === "waiting" ? "waits for " : ""}${waits.filter((each) => each.kind !== "hold").map((each) => each.text).join(", ")}`
    : actor.report?.reason ? `${now}: ${actor.report.reason}` : now;
  return html`<button class=${`node ${active(view, actor) ? "lit" : ""} ${now}`} aria-pressed=${chosen} style=${{ paddingLeft: `${0.5 + depth}rem` }}
    onClick=${() => choose(actor.path)}>
    <span class="mark" aria-hidden="true">${MARKS[now]}</span>
    <span class="who">${short(actor.path)}${actor.alerts > 0 && html` <span class="alarm" title="alerts of the loop guard">!${actor.alerts}</span>`}</span>
    <span class="spent">${actor.steps} ${actor.steps === 1 ? "step" : "steps"} · ${count(used.input + used.output)}${used.cost ? ` · ${cost(used.cost)}` : ""}</span>
    <span class="what">${what}</span>
  </button>`;
}
