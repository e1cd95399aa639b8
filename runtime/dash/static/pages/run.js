// The page Run: one run, live or past.

import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";

import { follow } from "../api.js";

export default function Run({ rest: run }) {
  const [events, setEvents] = useState([]);
  useEffect(() => {
    document.title = `${run} · Elenco`;
    return follow(run, { events: (found) => setEvents((all) => [...all, ...found]), reached() {}, state() {} });
  }, [run]);
  return html`<h1>${run}</h1><p>${events.length} events</p>`;
}
