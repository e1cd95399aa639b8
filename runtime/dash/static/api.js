// How the pages talk with their server: the token, JSON requests, and a run's stream that survives dropped connections.

import { splitter } from "./splitter.js";

const PLACE = "elenco.token";

let token = localStorage.getItem(PLACE) ?? "";

/** Take the token out of the fragment `#t=TOKEN`, so that neither the address bar nor the history keeps it. */
export function takeToken() {
  const found = /^#t=([\w-]+)(?:&(\/.*))?$/.exec(location.hash);
  if (!found) return;
  setToken(found[1]);
  history.replaceState(null, "", `#${found[2] ?? "/runs"}`);
}

export function setToken(text) {
  token = text;
  localStorage.setItem(PLACE, text);
}

/** An answer that is no success; `status` is 0 where no server answered. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { ...options.headers, authorization: `Bearer ${token}` } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the dashboard's server does not answer; is `elenco dash` still running?");
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, body.error ?? `the server answered ${answer.status}`);
}

/** GET a path and return its JSON. Throws Refused. */
export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

/** GET a path and return its text. Throws Refused. */
export async function getText(path) {
  return (await ask(path)).text();
}

/** POST JSON and return the JSON of the answer. Throws Refused. */
export async function post(path, body) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await ask(path, options)).json();
}

const underWay = new Map();

/**
 * Have a command carried out by a run, and return what its answer tells. The same one once more, while the first is
 * under way, is a button pressed twice: it is not sent, and gets the first one's answer. Throws Refused.
 */
export function command(run, body) {
  const path = `/api/runs/${encodeURIComponent(run)}/commands`;
  const key = `${path} ${JSON.stringify(body)}`;
  if (!underWay.has(key)) underWay.set(key, post(path, body).finally(() => underWay.delete(key)));
  return underWay.get(key);
}

/** A file the server makes, saved under `name`. */
export async function download(path, name) {
  const url = URL.createObjectURL(await (await ask(path)).blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const SLOWEST = 5000;
const HIDDEN = 10_000; // a page nobody looks at gives its connection back: a browser has six for each server

/**
 * Follow a run: `on.events(records)` gets every kept event once and in order, live ones between them; `on.reached(where)`
 * tells that all there was has come, and whether more comes live; `on.state(text)` says how the connection is, and
 * `on.over(text)` why nothing will come any more.
 * Returns a function that ends it.
 */
export function follow(run, on) {
  let next = 1;
  let ended = false;
  let abort = new AbortController();
  let wake = () => {};
  let hiding = 0;

  let fresh = [];
  const hand = () => {
    if (fresh.length) on.events(fresh);
    fresh = [];
  };
  const take = (name, line) => {
    const found = JSON.parse(line);
    if (name === "broken") throw new Refused(409, found.error);
    if (name === "reached") {
      hand();
      on.reached(found);
    } else if (found.seq === undefined || found.seq >= next) {
      if (found.seq !== undefined) next = found.seq + 1;
      fresh.push(found);
    }
  };

  const once = async () => {
    const path = `/api/runs/${encodeURIComponent(run)}/events?from=${next}`;
    const answer = await ask(path, { signal: abort.signal });
    on.state("");
    const feed = splitter(take);
    const decoder = new TextDecoder();
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      feed(decoder.decode(value, { stream: true }));
      hand();
    }
  };

  const pause = (ms) => new Promise((resolve) => { wake = resolve; setTimeout(resolve, ms); });

  const hidden = () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => abort.abort(), HIDDEN);
    else wake();
  };
  document.addEventListener("visibilitychange", hidden);

  (async () => {
    let wait = 200;
    while (!ended) {
      const before = next;
      try {
        await once();
      } catch (error) {
        if (ended) return;
        if (error instanceof Refused && error.status >= 400 && error.status < 500) return on.over(error.message);
        if (error.name !== "AbortError") on.state("reconnecting");
      }
      wait = next > before ? 200 : Math.min(wait * 2, SLOWEST);
      if (!ended) await pause(document.hidden ? 2 ** 30 : wait);
      abort = new AbortController();
    }
  })();

  return () => {
    ended = true;
    abort.abort();
    wake();
    clearTimeout(hiding);
    document.removeEventListener("visibilitychange", hidden);
  };
}
