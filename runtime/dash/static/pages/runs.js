// The page Runs: every run of this machine, the live ones first.

import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";

import { get } from "../api.js";
import { Problem } from "../parts/problem.js";

export default function Runs() {
  const [runs, setRuns] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = "Runs · Elenco";
    get("/api/runs").then((found) => setRuns(found.runs), (error) => setProblem(error.message));
  }, []);
  if (problem) return html`<${Problem} text=${problem} />`;
  return html`<h1>Runs</h1><ul>${runs?.map((run) => html`<li key=${run.id}><a href=${`#/run/${run.id}`}>${run.id}</a> ${run.state} ${run.task}</li>`)}</ul>`;
}
