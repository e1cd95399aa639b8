// The pages' pure modules under node: `node pure.mjs FOLDER` reads a task as JSON from standard input and prints what they make of it.

import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const [api, fold, look, format, lanes, runlist, spending, draft] = await Promise.all(
  ["splitter.js", "fold.js", "look.js", "format.js", "lanes.js", "runlist.js", "spending.js", "draft.js"].map((name) => import(new URL(name, folder))),
);

let text = "";
for await (const piece of process.stdin) text += piece;

/** What a view tells, as JSON. */
function told(view, now) {
  return {
    seq: view.seq,
    phase: look.phase(view, false),
    totals: look.totals(view.actors.values()),
    items: view.items.map((item) => item.kind),
    messages: view.messages.map(({ from, to, kind }) => [from, kind, to]),
    bars: view.bars.map(({ actor, kind, label, to, bad }) => [actor, kind, label, to !== null, bad]),
    asks: look.openAsks(view).map((ask) => ask.id),
    alerts: view.alerts.map((alert) => [alert.type, look.evidence(view, alert).length]),
    actors: [...view.actors.values()].map((actor) => ({
      path: actor.path,
      status: actor.status,
      doing: look.doing(view, actor),
      waits: look.waitsFor(view, actor).map(({ kind, text }) => [kind, text]),
      steps: actor.steps,
      tool_calls: actor.toolCalls,
      usage: actor.usage,
      cost: actor.cost,
      clock: look.clock(view, actor, now ?? view.at),
      budgets: look.budgets(view, actor, now ?? view.at),
      turn: actor.turn,
      children: actor.children,
    })),
  };
}

const TASKS = {
  /** The view after each of some events: `{events, at: [seq…], now}`. */
  views: ({ events, at, now }) => at.map((seq) => told(fold.foldUntil(events, seq), now)),
  /** The view after all events, live ones among them. */
  live: ({ events, now }) => told(events.reduce(fold.fold, fold.emptyView()), now),
  split: ({ pieces }) => {
    const found = [];
    const feed = api.splitter((name, data) => found.push([name, data]));
    pieces.forEach(feed);
    return found;
  },
  format: ({ name, values }) => values.map((value) => format[name](...value)),
  lanes: ({ bars, paths }) => lanes.layOut(bars, paths),
  /** Spending laid out over the last days: `{rows, measure, by, today, days}`. */
  spending: ({ rows, measure, by, today, days }) => {
    const laid = spending.layOut(rows, { measure, by, days: spending.lastDays(today, days) });
    return { ...laid, stacked: spending.stacked(laid.groups) };
  },
  keys: ({ asked, providers }) => asked.map(([model, base]) => draft.keyVariable(model, base, providers)),
  runs: ({ runs, filter }) => runlist.chosenRuns(runs, filter).map((run) => run.id),
};

console.log(JSON.stringify(JSON.parse(text).map(({ task, ...rest }) => TASKS[task](rest))));
