// What a view of a run tells about its actors: who works, who waits for what, what is spent of which limit; pure.

/** One word for what an actor does: thinking, calling, waiting (for a human, a child, or another try), held, idle, or its end. */
export function doing(view, actor) {
  if (actor.status !== "running") return actor.status;
  const waits = waitsFor(view, actor);
  if (actor.request) return "thinking";
  if (waits.some((each) => each.kind === "tool")) return "calling";
  if (waits.some((each) => each.kind === "approval" || each.kind === "question" || each.kind === "child" || each.kind === "retry")) return "waiting";
  return held(view, actor.path) ? "held" : "idle";
}

/** Whether an actor is at work this moment, not waiting for anybody else: those are lit. */
export function active(view, actor) {
  return ["thinking", "calling"].includes(doing(view, actor));
}

/** What an actor waits for, as `{kind, text}`; kinds: model, retry, approval, question, child, tool, hold. */
export function waitsFor(view, actor) {
  if (actor.status !== "running") return [];
  const found = [];
  if (actor.request) found.push({ kind: "model", text: `an answer of ${actor.request.model}`, since: actor.request.at });
  if (actor.retry) found.push({ kind: "retry", text: `another try (${actor.retry.of})`, since: actor.retry.since });
  for (const call of actor.calls.values()) {
    if (call.state === "done") continue;
    const asked = view.asked.get(call.approval)?.open ? view.asked.get(call.approval) : view.asked.get(call.question);
    const child = view.actors.get(call.child);
    if (asked?.open) found.push({ kind: asked.kind, text: `you: ${asked.id}`, since: asked.since });
    else if (child && child.status === "running") found.push({ kind: "child", text: short(child.path), since: child.startedAt });
    else if (call.state === "running") found.push({ kind: "tool", text: call.name, since: call.startedAt });
  }
  if (held(view, actor.path)) found.push({ kind: "hold", text: "leave to go on", since: view.holds.get(actor.path) ?? view.holds.get("") });
  return found;
}

/** Whether the actor at `path` is held, by itself or with everybody. */
export function held(view, path) {
  return view.holds.has(path) || view.holds.has("");
}

/** The last part of a path: researcher-1. */
export function short(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** An actor and all below it, parents first. */
export function subtree(view, path) {
  const actor = view.actors.get(path);
  return actor ? [actor, ...actor.children.flatMap((child) => subtree(view, child))] : [];
}

/** What some actors have used together; `cost` is null where a price was unknown. `reserved`: tokens of calls under way. */
export function totals(actors) {
  const found = { steps: 0, toolCalls: 0, input: 0, output: 0, cached: 0, reserved: 0, cost: 0, estimated: false };
  for (const actor of actors) {
    found.steps += actor.steps;
    found.toolCalls += actor.toolCalls;
    found.input += actor.usage.input;
    found.output += actor.usage.output;
    found.cached += actor.usage.cached_input;
    found.estimated ||= actor.usage.estimated;
    found.cost = found.cost === null || actor.cost === null ? null : found.cost + actor.cost;
    for (const each of actor.reserved.values()) found.reserved += each.input + each.output_cap;
  }
  return found;
}

const USED = {
  max_steps: (view, actor) => [actor.steps, 0],
  total_steps: (view, actor, all) => [all.steps, 0],
  token_budget: (view, actor, all) => [all.input + all.output, all.reserved],
  input_budget: (view, actor, all) => [all.input, 0],
  output_budget: (view, actor, all) => [all.output, 0],
  cost_budget: (view, actor, all) => [all.cost, 0],
  max_tool_calls: (view, actor, all) => [all.toolCalls, 0],
  timeout: (view, actor, all, now) => [clock(view, actor, now), 0],
};

/**
 * The limits that bound an actor: its own first, then those of the actors above it. Each `{limit, scope, used, reserved,
 * of, source, inherited}`; `used` is null for an unknown cost.
 */
export function budgets(view, actor, now) {
  const found = [];
  for (let scope = actor; scope; scope = view.actors.get(scope.parent)) {
    const all = totals(subtree(view, scope.path));
    for (const [limit, measure] of Object.entries(USED)) {
      const of = scope.limits[limit];
      if (of === undefined || (limit === "max_steps" && scope !== actor)) continue;
      const [used, reserved] = measure(view, scope, all, now);
      found.push({ limit, scope: scope.path, used, reserved, of, source: scope.limits.sources?.[limit] ?? "", inherited: scope !== actor });
    }
  }
  return found;
}

/** Seconds on an actor's clock: it stands while everybody below waits for a human or is held, and when it has ended. */
export function clock(view, actor, now) {
  if (actor.endedAt !== null) return Math.max(0, actor.endedAt - actor.startedAt - actor.stood);
  const until = stands(view, actor) ? Math.min(now, view.at) : now;
  return Math.max(0, until - actor.startedAt - actor.stood);
}

const PATIENT = ["approval", "question", "hold", "child"];

/** Whether nobody in an actor's subtree does anything: each waits for a human, or is held. */
export function stands(view, actor) {
  return subtree(view, actor.path).every((each) => {
    if (each.status !== "running") return true;
    const waits = waitsFor(view, each);
    return waits.length > 0 && waits.every((wait) => PATIENT.includes(wait.kind));
  });
}

/** What the run as a whole does; `owned`: a process works on it. */
export function phase(view, owned) {
  if (view.report) return view.report.status;
  if (view.waiting) return "waiting";
  if (!owned) return view.forked ? "forked" : "interrupted";
  return held(view, view.root) ? "held" : "running";
}

/** Approvals and questions nobody has answered. */
export function openAsks(view) {
  return [...view.asked.values()].filter((each) => each.open);
}

const SHOWN = 12;

/** The calls an alert is about, oldest first: the one it names, and the like of it (the tools of its pattern) before. */
export function evidence(view, alert) {
  const before = view.items.filter((item) => item.kind === "call" && item.actor === alert.actor && item.seq <= alert.seq);
  const named = before.find((item) => item.call.id === alert.callId);
  if (!named) return [];
  const same = (call) => call.name === named.call.name && JSON.stringify(call.arguments) === JSON.stringify(named.call.arguments);
  const tools = new Set(alert.about.map((text) => text.split(" ", 1)[0]));
  const found = before.filter((item) => (alert.about.length > 1 ? tools.has(item.call.name) : same(item.call)));
  return found.slice(-SHOWN);
}

/** One line for what an event says, for the list of events. */
export function brief(event) {
  switch (event.type) {
    case "run.started": return event.task;
    case "actor.started": return event.task;
    case "actor.finished": case "run.finished": return `${event.report.status} ${event.report.reason ?? ""} ${event.report.text}`;
    case "model.requested": return `${event.purpose} ${event.turn + 1} to ${event.model}`;
    case "model.finished": return event.text || event.tool_calls.map((call) => call.name).join(", ");
    case "tool.requested": case "approval.requested": return `${event.name} ${JSON.stringify(event.arguments)}`;
    case "tool.finished": return `${event.name}: ${event.result}`;
    case "tool.started": return event.name;
    case "permission.decided": return `${event.verdict}: ${event.rule}`;
    case "budget.reserved": return `${event.input} + ${event.output_cap} tokens`;
    case "budget.settled": return `${event.usage.input} + ${event.usage.output} tokens`;
    case "file.changed": case "file.changing": return event.path;
    default: {
      const { v, seq, at, run, actor, type, ...rest } = event;
      return rest.text ?? rest.why ?? rest.message ?? JSON.stringify(rest);
    }
  }
}
