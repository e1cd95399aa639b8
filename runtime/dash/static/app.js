// The shell of the page: who may look, the way from an address to a page, light and dark, and the table of all pages.
//
// A page is a module under pages/ that exports a component as default. It is given `rest`, what follows its name in the
// address (`#/run/k7f2` is the page `run` with the rest `k7f2`), and sets document.title itself.

import { html, render } from "htm/preact";
import { useEffect, useState } from "preact/hooks";

import { get, setToken, takeToken } from "./api.js";
import { Problem } from "./parts/problem.js";

/** Every page: its word in the address, its name in the navigation (none: it has no entry), its module. */
const PAGES = [
  { word: "runs", name: "Runs", load: () => import("./pages/runs.js") },
  { word: "run", load: () => import("./pages/run.js") },
  { word: "playground", name: "Playground", load: () => import("./pages/playground.js") },
  { word: "compare", name: "Compare", load: () => import("./pages/compare.js") },
];

const FIRST = "/runs";

function here() {
  const [word, ...rest] = (location.hash.slice(1) || FIRST).replace(/^\//, "").split("/");
  return { word, rest: rest.map(decoded).join("/") };
}

/** A part of an address as it was before it was encoded; one that never was, such as a lone %, stays as it is. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function Themes() {
  const names = ["auto", "light", "dark"];
  const [theme, setTheme] = useState(localStorage.getItem("elenco.theme") ?? "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("elenco.theme", theme);
  }, [theme]);
  const next = names[(names.indexOf(theme) + 1) % names.length];
  return html`<button class="quiet" title=${`colours: ${theme}; change to ${next}`} aria-label=${`colours: ${theme}; change to ${next}`}
    onClick=${() => setTheme(next)}>${{ auto: "◐", light: "☀", dark: "☾" }[theme]}</button>`;
}

function Navigation({ word }) {
  return html`<header>
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>to the content</a>
    <a class="brand" href="#/runs">Elenco</a>
    <nav aria-label="pages">${PAGES.filter((page) => page.name).map(
      (page) => html`<a href=${`#/${page.word}`} aria-current=${page.word === word ? "page" : undefined}>${page.name}</a>`,
    )}</nav>
    <${Themes} />
  </header>`;
}

function Page({ word, rest }) {
  const [loaded, setLoaded] = useState(null);
  useEffect(() => {
    const page = PAGES.find((each) => each.word === word);
    if (!page) return setLoaded({ word, Component: () => html`<p>There is no page “${word}”. <a href="#/runs">All runs</a></p>` });
    let gone = false;
    const failed = () => html`<${Problem} text="the page did not come from the server; is \`elenco dash\` still running?" again=${() => location.reload()} />`;
    page.load().then((module) => gone || setLoaded({ word, Component: module.default }), () => gone || setLoaded({ word, Component: failed }));
    return () => { gone = true; };
  }, [word]);
  if (loaded?.word !== word) return null;
  return html`<${loaded.Component} key=${`${word}/${rest}`} rest=${rest} />`;
}

function Locked({ again }) {
  const [text, setText] = useState("");
  const open = (event) => {
    event.preventDefault();
    setToken(text.trim().replace(/^.*#t=/, ""));
    again();
  };
  return html`<form class="locked" onSubmit=${open}>
    <h1>This page has no key</h1>
    <p>Open the link that <code>elenco dash</code> printed; each start of it has a new one. Or paste it here:</p>
    <label>Link or token <input autofocus value=${text} onInput=${(event) => setText(event.target.value)} autocomplete="off" spellcheck=${false} /></label>
    <button>Open</button>
  </form>`;
}

function App() {
  const [at, setAt] = useState(here);
  const [door, setDoor] = useState({ state: "asking" });
  const knock = () => get("/api/about").then(
    (about) => setDoor({ state: "open", about }),
    (error) => setDoor({ state: error.status === 401 ? "locked" : "broken", error }),
  );
  useEffect(() => {
    const moved = () => {
      takeToken();
      setAt(here());
    };
    addEventListener("hashchange", moved);
    knock();
    return () => removeEventListener("hashchange", moved);
  }, []);
  return html`<${Navigation} word=${at.word} />
    <main id="main" tabindex="-1">
      ${door.state === "locked" && html`<${Locked} again=${knock} />`}
      ${door.state === "broken" && html`<${Problem} text=${door.error.message} again=${knock} />`}
      ${door.state === "open" && html`<${Page} ...${at} />`}
    </main>`;
}

takeToken();
render(html`<${App} />`, document.getElementById("app"));
