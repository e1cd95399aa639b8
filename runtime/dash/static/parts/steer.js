// What one may tell an actor, or the run: say, hold and continue, cancel, other limits.

import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { amount, limitName } from "../format.js";
import { held, short } from "../look.js";

const LIMITS = ["max_steps", "total_steps", "token_budget", "cost_budget", "timeout", "max_tool_calls", "max_children", "max_depth"];

/** For the actor at `path`; `send(command)` resolves to whether it was carried out. */
export function Steer({ view, actor, send }) {
  const [text, setText] = useState("");
  const [interrupt, setInterrupt] = useState(false);
  const [sure, setSure] = useState(false);
  const path = actor.path;
  const say = async (event) => {
    event.preventDefault();
    if (await send({ op: "say", actor: path, text, interrupt })) setText((now) => (now === text ? "" : now));
  };
  const cancel = () => {
    setSure(false);
    send({ op: "cancel", actor: path });
  };
  return html`<div class="steer">
    <form onSubmit=${say}>
      <label>Say to ${short(path)}<textarea rows="2" value=${text} onInput=${(event) => setText(event.target.value)}
        onKeyDown=${(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) say(event); }}
        placeholder="it reads this at its next step"></textarea></label>
      <div class="buttons"><button class="first" disabled=${!text.trim()}>Say</button>
        <label class="check"><input type="checkbox" checked=${interrupt} onChange=${(event) => setInterrupt(event.target.checked)} /> interrupt what it does</label></div>
    </form>
    <div class="buttons">
      ${held(view, path) ? html`<button onClick=${() => send({ op: "continue", actor: path })}>Continue ${short(path)}</button>`
        : html`<button onClick=${() => send({ op: "hold", actor: path })}>Hold ${short(path)}</button>`}
      ${sure ? html`<button class="bad" onClick=${cancel}>Yes, cancel ${short(path)}</button><button onClick=${() => setSure(false)}>No</button>`
        : html`<button class="bad" onClick=${() => setSure(true)}>Cancel ${short(path)}</button>`}
    </div>
    <${ChangeLimits} actor=${actor} send=${send} />
  </div>`;
}

function ChangeLimits({ actor, send }) {
  const [limit, setLimit] = useState("max_steps");
  const [value, setValue] = useState("");
  const change = async (event) => {
    event.preventDefault();
    // What was typed before the answer came stays.
    if (await send({ op: "limits", actor: actor.path, limits: { [limit]: value.trim() } })) setValue((now) => (now === value ? "" : now));
  };
  const now = actor.limits[limit];
  return html`<form class="buttons limits" onSubmit=${change}>
    <select aria-label="limit" value=${limit} onChange=${(event) => setLimit(event.target.value)}>${LIMITS.map(
      (name) => html`<option value=${name}>${limitName(name)}</option>`)}</select>
    <input aria-label=${`new value of ${limitName(limit)}`} size="8" placeholder=${now === undefined ? "none" : amount(limit, now)} value=${value} onInput=${(event) => setValue(event.target.value)} />
    <button disabled=${!value.trim()} title="a number, or +20 for that much more">Set limit</button>
  </form>`;
}
