// What waits for a human: cards with the command or the diff, and the ways to decide.

import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { span } from "../format.js";
import { short } from "../look.js";
import { Text } from "./diff.js";

/** `send(command)` carries a command out; without it, while one looks back, cards only show. */
export function Asks({ asks, now, send }) {
  if (!asks.length) return null;
  return html`<section class="asks" aria-label="waits for you">${asks.map((ask) => ask.kind === "approval"
    ? html`<${Approval} key=${ask.id} ask=${ask} now=${now} send=${send} />`
    : html`<${Question} key=${ask.id} ask=${ask} now=${now} send=${send} />`)}</section>`;
}

function Head({ ask, what, now }) {
  return html`<h3><span class="id">${ask.id}</span> ${short(ask.actor)} ${what}</h3>
    <div class="facts">${ask.why ? `${ask.why} · ` : ""}waiting ${span(Math.max(0, now - ask.since))}, its clock stands still</div>`;
}

function Approval({ ask, now, send }) {
  const [why, setWhy] = useState("");
  const [draft, setDraft] = useState(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const decide = async (command) => {
    setBusy(true);
    await send({ id: ask.id, ...command });
    setBusy(false);
  };
  const edited = () => {
    let given;
    try {
      given = JSON.parse(draft);
    } catch (error) {
      return setProblem(`this is no JSON: ${error.message}`);
    }
    if (given === null || typeof given !== "object" || Array.isArray(given)) return setProblem("the arguments are one JSON object");
    return decide({ op: "approve", arguments: given });
  };
  const deny = (event) => {
    event.preventDefault();
    decide({ op: "deny", why });
  };
  const shown = ask.preview || Object.entries(ask.arguments).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n");
  return html`<article class="card ask" aria-label=${`approval ${ask.id}`}>
    <${Head} ask=${ask} now=${now} what=${ask.about === "unclear" ? `may have run ${ask.name} before the process died; run it again?` : `asks to run ${ask.name}`} />
    <${Text} text=${shown} most=${14} />
    ${draft !== null && html`<label>Arguments<textarea rows=${Math.min(12, draft.split("\n").length + 1)} value=${draft} spellcheck=${false}
      onInput=${(event) => { setDraft(event.target.value); setProblem(""); }}></textarea></label>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${send && html`<form class="buttons" onSubmit=${deny}>
      ${draft === null
        ? html`<button type="button" class="first" disabled=${busy} onClick=${() => decide({ op: "approve" })}>Approve</button>
          ${ask.always.length > 0 && html`<button type="button" disabled=${busy} title=${ask.always.join(", ")} onClick=${() => decide({ op: "approve", scope: "run" })}>In this run</button>
            <button type="button" disabled=${busy} title=${ask.always.join(", ")} onClick=${() => decide({ op: "approve", scope: "workspace" })}>Always here</button>`}
          <button type="button" disabled=${busy} onClick=${() => setDraft(JSON.stringify(ask.arguments, null, 2))}>Edit</button>`
        : html`<button type="button" class="first" disabled=${busy} onClick=${edited}>Approve as edited</button>
          <button type="button" onClick=${() => { setDraft(null); setProblem(""); }}>As it was</button>`}
      <input aria-label=${`why not, for ${ask.id}`} placeholder="why not: the agent reads it" value=${why} onInput=${(event) => setWhy(event.target.value)} />
      <button class="bad" disabled=${busy}>Deny</button>
      ${ask.always.length > 0 && html`<span class="dim">always: ${ask.always.join(", ")}</span>`}
    </form>`}
  </article>`;
}

function Question({ ask, now, send }) {
  const [text, setText] = useState("");
  const answer = (given) => send({ op: "answer", id: ask.id, text: given });
  const typed = (event) => {
    event.preventDefault();
    answer(text);
  };
  return html`<article class="card ask" aria-label=${`question ${ask.id}`}>
    <${Head} ask=${ask} now=${now} what="asks you" />
    <${Text} text=${ask.text} most=${14} />
    ${send && html`<form class="buttons" onSubmit=${typed}>
      ${ask.options.map((option) => html`<button type="button" onClick=${() => answer(option)}>${option}</button>`)}
      <input aria-label=${`answer to ${ask.id}`} value=${text} onInput=${(event) => setText(event.target.value)} placeholder="your answer" />
      <button class="first" disabled=${!text.trim()}>Answer</button>
    </form>`}
  </article>`;
}
