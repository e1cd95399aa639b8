// The page Playground: edit an agent's file, its tools and their code, its model; run the draft and watch it; save it.

import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { command, post } from "../api.js";
import { keep, kept, keyVariable, setTheKey, theKey } from "../draft.js";
import { oneLine } from "../format.js";
import { Text } from "../parts/diff.js";
import { Editor } from "../parts/editor.js";
import { Problem } from "../parts/problem.js";
import { Trial } from "../parts/trial.js";

const TYPED = 300; // milliseconds without a key pressed until a text is looked at
const TOLD = 1200;
const NOTHING = { faults: [], code_faults: [], own_tools: [], notes: [], left_out: [], agent: null };

export default function Playground() {
  const [draft, setDraft] = useState(kept);
  const [there, setThere] = useState(null);
  const [checked, setChecked] = useState(NOTHING);
  const [described, setDescribed] = useState(null);
  const [said, setSaid] = useState({ text: "", bad: false });
  const [saving, setSaving] = useState(null);
  const [busy, setBusy] = useState(false);
  const [file, setFile] = useState("agent");
  const [key, setKey] = useState(theKey);
  const latest = useRef(draft);
  latest.current = draft;

  const change = (more) => {
    const next = { ...latest.current, ...more };
    latest.current = next;
    setDraft(next);
    keep(next);
  };
  const variable = there ? keyVariable(checked.agent?.model || draft.model || there.model, draft.base_url, there.providers) : "";
  const ask = async (what, body = {}) => {
    const answer = await post(`/api/playground/${what}`, { workspace: latest.current.workspace, ...body });
    if (answer.error && !answer.walls) throw Object.assign(new Error(answer.error), { faults: answer.faults });
    return answer;
  };
  const told = (error) => setSaid({ text: error.message, bad: true });

  const open = async (workspace = latest.current.workspace) => {
    try {
      const found = await post("/api/playground/open", workspace ? { workspace } : {});
      setThere(found);
      change({ workspace: found.workspace });
      setSaid({ text: "", bad: false });
      if (!latest.current.text) choose(found, found.agents.find((agent) => agent.origin === "workspace")?.name ?? "coordinator");
    } catch (error) {
      told(error);
    }
  };
  const choose = (found, name) => {
    const agent = found.agents.find((each) => each.name === name);
    const text = agent?.text ?? found.starter;
    change({ name: agent?.name ?? "", text, saved: text });
    setSaid({ text: "", bad: false });
  };
  useEffect(() => {
    document.title = "Playground · Elenco";
    open();
  }, []);

  const check = async (current) => {
    const { workspace, text, code } = latest.current;
    if (!workspace) return;
    try {
      const found = await ask("check", { text, code });
      if (current()) setChecked(found);
    } catch (error) {
      if (current()) told(error);
    }
  };
  useLate(TYPED, check, [draft.workspace, draft.text, draft.code]);
  useLate(TOLD, async (current) => {
    if (!draft.workspace || !draft.code.trim()) return setDescribed(null);
    try {
      const found = await ask("tools", { code: draft.code });
      if (current()) setDescribed(found);
    } catch (error) {
      if (current()) setDescribed({ tools: [], faults: [], error: error.message });
    }
  }, [draft.workspace, draft.code]);

  const editing = useRef(Promise.resolve());
  /** One edit after the other, and each in the text as it is when its answer comes: what is typed meanwhile stays. */
  const edit = (body) => {
    const { name } = latest.current;
    setChecked((now) => ({ ...now, agent: { ...now.agent, ...body } })); // until the text is looked at
    editing.current = editing.current.then(async () => {
      try {
        while (latest.current.name === name) {
          const { text } = latest.current;
          const edited = await ask("edit", { text, ...body });
          if (latest.current.text === text) return change({ text: edited.text });
        }
      } catch (error) {
        told(error);
        return check(() => true);
      }
    });
  };
  const run = async () => {
    if (busy) return;
    setBusy(true);
    setSaid({ text: "the run begins", bad: false });
    const { text, code, task, model, base_url, wire } = latest.current;
    try {
      const answer = await ask("run", { text, code, task, model, base_url, wire, key: variable ? key : "" });
      if (answer.error) throw new Error(answer.error);
      change({ trials: [...latest.current.trials.filter((id) => id !== answer.run), answer.run].slice(-10) });
      setSaid({ text: "", bad: false });
    } catch (error) {
      told(error);
    }
    setBusy(false);
  };
  const send = async (id, body) => {
    try {
      await command(id, body);
      return true;
    } catch (error) {
      told(error);
      return false;
    }
  };
  const look = async () => {
    const { text } = latest.current;
    try {
      setSaving({ ...(await ask("diff", { text })), text });
    } catch (error) {
      told(error);
    }
  };
  const save = async () => {
    const { text, seen } = saving;
    setSaving(null);
    try {
      const { path } = await ask("save", { text, seen });
      change({ saved: text });
      setSaid({ text: `saved as ${path}`, bad: false });
    } catch (error) {
      told(error);
    }
  };
  useKeys({ run, look });

  if (!there) return html`<h1>Playground</h1>${said.bad ? html`<${Problem} text=${said.text} again=${() => open("")} />` : html`<p class="dim">opening</p>`}`;
  const wrong = [...checked.faults, ...checked.code_faults].filter((fault) => !fault.warning).length;
  const last = draft.trials.at(-1);
  const faults = [...checked.code_faults, ...(described?.faults ?? []).filter((fault) => !checked.code_faults.length || fault.line !== checked.code_faults[0].line)];
  return html`<h1>Playground</h1>
    <${Where} there=${there} draft=${draft} open=${open} choose=${(name) => choose(there, name)} />
    <div class="workbench">
      <section class="card" aria-label="files">
        <div class="tabs" role="tablist">
          <button role="tab" aria-selected=${file === "agent"} onClick=${() => setFile("agent")}>agent file${checked.faults.length ? html` <b class="warn">${checked.faults.length}</b>` : ""}</button>
          <button role="tab" aria-selected=${file === "code"} onClick=${() => setFile("code")}>tools.py${faults.length ? html` <b class="warn">${faults.length}</b>` : ""}</button>
        </div>
        ${file === "agent"
          ? html`<${Editor} label="agent file" text=${draft.text} change=${(text) => change({ text })} faults=${checked.faults} />
            ${checked.left_out.length > 0 && html`<p class="warn">does not count in a draft, so it asks: ${checked.left_out.join(", ")} (save the file and trust the workspace)</p>`}
            ${checked.notes.map((note) => html`<p class="facts">${note}</p>`)}`
          : html`<${Code} draft=${draft} change=${change} faults=${faults} described=${described} starter=${there.tool_starter} />`}
      </section>
      <section class="card settings" aria-label="what it gets">
        <${Tools} there=${there} checked=${checked} edit=${edit} />
        <${Model} there=${there} checked=${checked} draft=${draft} change=${change} edit=${edit} variable=${variable} typed=${key} type=${(text) => { setTheKey(text); setKey(text); }} />
        <label>Task <textarea rows="3" value=${draft.task} onInput=${(event) => change({ task: event.target.value })} placeholder="what the agent is to do"></textarea></label>
        <div class="buttons">
          <button class="first" onClick=${run} disabled=${busy || wrong > 0 || !draft.task.trim()} title="Ctrl+Enter">Run</button>
          <button onClick=${look} disabled=${checked.faults.some((fault) => !fault.warning)} title="Ctrl+S">Save…</button>
          ${draft.text !== draft.saved && html`<span class="dim">not saved</span>`}
          ${draft.trials.length > 1 && html`<a href=${`#/compare/${draft.trials.at(-2)}/${last}`}>compare the last two</a>`}
        </div>
        <p class=${`said ${said.bad ? "problem" : "facts"}`} role="status">${said.text}</p>
      </section>
    </div>
    ${saving && html`<${Save} saving=${saving} own=${checked.own_tools} save=${save} leave=${() => setSaving(null)} />`}
    ${last && html`<${Trial} key=${last} id=${last} send=${send} />`}`;
}

/** Do something when nothing has changed for a while; `current()` tells whether that is still so. */
function useLate(wait, work, what) {
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => work(() => current), wait);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, what);
}

function useKeys(now) {
  const latest = useRef(now);
  latest.current = now;
  useEffect(() => {
    const pressed = (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      if (event.key === "Enter") latest.current.run();
      else if (event.key === "s") latest.current.look();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function Where({ there, draft, open, choose }) {
  const [folder, setFolder] = useState(there.workspace);
  const [asked, setAsked] = useState(null);
  const changed = draft.text !== draft.saved;
  const pick = (name) => (changed ? setAsked(name) : choose(name));
  const go = (event) => {
    event.preventDefault();
    open(folder);
  };
  return html`<div class="buttons where">
    <label>Agent <select value=${draft.name} onChange=${(event) => { pick(event.target.value); event.target.value = draft.name; }}>
      ${there.agents.map((agent) => html`<option key=${agent.name} value=${agent.name}>${agent.name} (${agent.shown})</option>`)}<option value="">a new one</option></select></label>
    <form class="buttons" onSubmit=${go}><label>in <input size="30" value=${folder} onInput=${(event) => setFolder(event.target.value)} spellcheck=${false} /></label>
      <button disabled=${folder === there.workspace}>Open</button></form>
    ${asked !== null && html`<span class="problem" role="alert">What you changed is not saved. <button onClick=${() => { choose(asked); setAsked(null); }}>Drop it</button> <button onClick=${() => setAsked(null)}>Keep it</button></span>`}
  </div>`;
}

function Code({ draft, change, faults, described, starter }) {
  if (!draft.code) return html`<p>Tools of your own, written in Python, for this draft. They run in the sandbox only, each call in a process of its own without network.</p>
    <p><button onClick=${() => change({ code: starter })}>Begin with an example</button></p>`;
  return html`<${Editor} label="tools.py" text=${draft.code} change=${(code) => change({ code })} faults=${faults} />
    ${described?.error && html`<p class="problem">${described.error}</p>`}
    ${described?.tools?.map((tool) => html`<details key=${tool.name}><summary><b class="mono">${tool.name}</b> <span class="facts">effects ${tool.effects} · ${oneLine(tool.description, 80)}</span></summary><pre>${JSON.stringify(tool.parameters, null, 2)}</pre></details>`)}
    <p class="facts">Part of the draft alone: a save writes the agent's file. To keep a tool, make a plugin of it (docs/plugins.md).</p>`;
}

function Tools({ there, checked, edit }) {
  const chosen = checked.agent?.tools ?? [];
  const known = [...checked.own_tools.map((name) => ({ name, description: "of tools.py", own: true })), ...there.tools];
  const toggle = (name) => edit({ tools: chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name] });
  return html`<fieldset disabled=${!checked.agent}><legend>Tools <span class="dim">${checked.agent ? `${chosen.length} chosen` : "the file has faults"}</span></legend>
    <div class="choices">${known.map((tool) => html`<label key=${tool.name} class="check" title=${tool.description}><input type="checkbox" checked=${chosen.includes(tool.name)} onChange=${() => toggle(tool.name)} /> ${tool.name}${tool.own ? html` <span class="good">own</span>` : ""}</label>`)}</div>
  </fieldset>`;
}

function Model({ there, checked, draft, change, edit, variable, typed, type }) {
  const said = checked.agent?.model ?? "";
  const ready = there.providers.some((each) => each.variable === variable && each.ready);
  return html`<fieldset><legend>Model</legend>
    <label>in the file <input list="models" value=${said} disabled=${!checked.agent} placeholder=${`none: the run's, ${draft.model || there.model}`} onChange=${(event) => edit({ model: event.target.value })} spellcheck=${false} /></label>
    <label>of the run <input list="models" value=${draft.model} placeholder=${there.model} onInput=${(event) => change({ model: event.target.value })} spellcheck=${false} /></label>
    <datalist id="models">${there.models.map((name) => html`<option value=${name}></option>`)}</datalist>
    <details open=${Boolean(draft.base_url)}><summary>another server</summary>
      <label>address <input value=${draft.base_url} placeholder="http://127.0.0.1:8080/v1" onInput=${(event) => change({ base_url: event.target.value })} spellcheck=${false} /></label>
      <label>wire <select value=${draft.wire} onChange=${(event) => change({ wire: event.target.value })}><option value="">the usual</option>${there.wires.map((name) => html`<option>${name}</option>`)}</select></label></details>
    ${variable && html`<form onSubmit=${(event) => event.preventDefault()}><label>Key <input type="password" autocomplete="off" name="none" value=${typed} onInput=${(event) => type(event.target.value)} placeholder=${ready ? `${variable} is set` : variable} /></label></form>
      <p class="facts">Stays in this tab until it is reloaded, and goes into the environment of the run's process. Nowhere else.</p>`}
  </fieldset>`;
}

function Save({ saving, own, save, leave }) {
  const box = useRef(null);
  useEffect(() => { box.current.showModal(); }, []);
  return html`<dialog ref=${box} class="card" aria-label="save" onClose=${leave}>
    <h2>Save as ${saving.path}</h2>
    ${saving.diff ? html`<div class="scrolls"><${Text} text=${saving.diff} diff most=${200} /></div>` : html`<p>It is there already, word for word.</p>`}
    ${own.length > 0 && html`<p class="warn">tools.py is not saved: ${own.join(", ")} will be unknown to the saved agent until a plugin brings ${own.length > 1 ? "them" : "it"}.</p>`}
    <div class="buttons"><button class="first" onClick=${save} disabled=${!saving.diff}>Save</button><button onClick=${leave}>Leave it</button></div>
  </dialog>`;
}
