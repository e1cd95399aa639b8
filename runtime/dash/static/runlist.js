// Which runs a filter lets through, and in which order: live ones first, then the newest; pure.

const LIVE = ["running", "waiting", "held"];

/** `state` may be one of a run's states, or live: a process works on it. */
export function chosenRuns(runs, { state, agent, text }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const passes = (run) => {
    if (state === "live" ? !run.owned : state && run.state !== state) return false;
    if (agent && run.agent !== agent) return false;
    const all = `${run.id} ${run.name} ${run.agent} ${run.model} ${run.task}`.toLowerCase();
    return words.every((word) => all.includes(word));
  };
  const rank = (run) => (run.owned ? 0 : LIVE.includes(run.state) ? 1 : 2);
  return runs.filter(passes).sort((a, b) => rank(a) - rank(b) || b.started - a.started);
}

/** Every agent that has run, by name. */
export function agentsOf(runs) {
  return [...new Set(runs.map((run) => run.agent).filter(Boolean))].sort();
}
