// A run's events folded into what the page shows: one event at a time, its cost does not grow with the run; pure.
//
// The view is changed in place and belongs to whoever made it. Times are seconds since the epoch.

import { stands } from "./look.js";

/** What is there before the first event. */
export function emptyView() {
  return {
    seq: 0, at: 0, started: null, startedAt: 0, report: null, waiting: false, forked: false, holds: new Map(), open: 0, resumed: 0, limits: {},
    root: "", actors: new Map(), items: [], bars: [], messages: [], alerts: [], warnings: [], asked: new Map(),
    servers: new Map(), changes: [], lost: 0,
  };
}

/** The view after one more event, kept or live. Types it does not know change nothing. */
export function fold(view, event) {
  if (event.seq !== undefined) {
    if (event.seq <= view.seq) return view;
    const at = Date.parse(event.at) / 1000;
    if (event.type === "run.resumed") goneBy(view, at - view.at);
    else if (view.open || view.holds.size) standStill(view, at - view.at);
    view.seq = event.seq;
    view.at = at;
  }
  STEPS[event.type]?.(view, event, view.actors.get(event.actor));
  return view;
}

/** The view of a run as it was after the event `until`; `events` are all kept ones from the first on. */
export function foldUntil(events, until) {
  const view = emptyView();
  for (const event of events) {
    if (event.seq > until) break;
    fold(view, event);
  }
  return view;
}

/** While humans are waited for, or somebody is held, clocks may stand. */
function standStill(view, seconds) {
  for (const actor of view.actors.values()) if (actor.status === "running" && stands(view, actor)) actor.stood += seconds;
}

/** Before a resume there was no process: all clocks stood. */
function goneBy(view, seconds) {
  for (const actor of view.actors.values()) if (actor.status === "running") actor.stood += seconds;
}

const NOTHING = { input: 0, output: 0, cached_input: 0, reasoning: 0, estimated: false };

function newActor(view, event) {
  return {
    path: event.actor, agent: event.agent, parent: event.parent, number: event.number, task: event.task, model: event.model,
    limits: event.limits, prompt: event.prompt, tools: event.tools, callId: event.call_id, startedAt: view.at,
    endedAt: null, status: "running", request: null, retry: null, turn: [], calls: new Map(), steps: 0, toolCalls: 0,
    usage: { ...NOTHING }, cost: 0, stood: 0, reserved: new Map(), children: [], notes: [], skills: [], cancel: "", report: null,
    alerts: 0,
  };
}

function add(view, kind, event, more = {}) {
  const item = { kind, seq: view.seq, at: view.at, actor: event.actor, ...more };
  view.items.push(item);
  return item;
}

function tell(view, from, to, kind, text) {
  view.messages.push({ seq: view.seq, at: view.at, from, to, kind, text });
}

/** Who a human is in the sequence of messages. */
export const HUMAN = "you";

function open(view, actor, kind, label, more = {}) {
  const bar = { actor: actor.path, kind, label, from: view.at, to: null, seq: view.seq, bad: false, ...more };
  view.bars.push(bar);
  return bar;
}

function close(view, bar, bad = false) {
  if (!bar || bar.to !== null) return;
  bar.to = view.at;
  bar.bad = bad;
}

function endTurn(view, actor, bad = false) {
  close(view, actor.request?.bar, bad);
  actor.request = actor.retry = null;
  actor.turn = [];
}

function callOf(actor, id) {
  return actor?.calls.get(id);
}

function settle(view, id) {
  const asked = view.asked.get(id);
  if (asked?.open) {
    asked.open = false;
    view.open -= 1;
    close(view, asked.bar);
  }
}

/** What the actor's own clock showed: the time between two processes is not in it. */
function readClock(view, actor, elapsed) {
  if (elapsed) actor.stood = view.at - actor.startedAt - elapsed;
}

function reopen(view, actor) {
  if (actor.endedAt !== null) actor.stood += view.at - actor.endedAt;
  actor.status = "running";
  actor.report = null;
  actor.endedAt = null;
  actor.cancel = "";
}

const STEPS = {
  "run.started"(view, event) {
    view.started = event;
    view.startedAt = view.at;
    view.limits = event.limits;
  },
  "run.waiting"(view) {
    view.waiting = true;
  },
  "run.forked"(view) {
    view.forked = true;
  },
  "run.resumed"(view) {
    view.resumed += 1;
    view.forked = false;
    view.waiting = false;
    for (const actor of view.actors.values()) {
      endTurn(view, actor, true);
      for (const call of actor.calls.values()) close(view, call.bar, true);
    }
    if (view.report) {
      view.report = null;
      const root = view.actors.get(view.root);
      if (root) reopen(view, root);
    }
    add(view, "resumed", { actor: view.root });
  },
  "run.finished"(view, event) {
    view.report = event.report;
    view.waiting = false;
    for (const id of view.asked.keys()) settle(view, id);
    for (const bar of view.bars) close(view, bar, true);
    const root = view.actors.get(view.root);
    if (root && !root.report) {
      root.report = event.report;
      root.status = event.report.status;
      root.endedAt = view.at;
      add(view, "report", { actor: view.root }, { report: event.report });
    }
  },
  "limits.changed"(view, event, actor) {
    if (actor) actor.limits = { ...actor.limits, ...event.limits };
    if (!actor || event.actor === view.root) view.limits = { ...view.limits, ...event.limits };
    if (event.by !== "resume") add(view, "limits", event, { limits: event.limits, by: event.by });
    else for (const each of view.actors.values()) if (each.report && each.path === view.root) reopen(view, each);
  },
  "cancel.requested"(view, event, actor) {
    const cancelled = actor ?? view.actors.get(view.root);
    if (cancelled) cancelled.cancel = event.by || HUMAN;
    tell(view, HUMAN, cancelled?.path ?? "", "cancels", "");
  },
  "actor.started"(view, event) {
    const actor = newActor(view, event);
    view.actors.set(actor.path, actor);
    const parent = view.actors.get(event.parent);
    if (parent && !parent.children.includes(actor.path)) parent.children.push(actor.path);
    const call = callOf(parent, event.call_id);
    if (call) {
      call.child = actor.path;
      actor.background = call.name.startsWith("start_");
    }
    if (!parent && !view.root) view.root = actor.path;
    tell(view, event.parent ?? HUMAN, actor.path, "asks", event.task);
    add(view, "task", event, { text: event.task, from: event.parent ?? HUMAN });
  },
  "actor.held"(view, event, actor) {
    view.holds.set(actor?.path ?? "", view.at);
  },
  "actor.continued"(view, event, actor) {
    view.holds.delete(actor?.path ?? "");
  },
  "actor.restarted"(view, event, actor) {
    if (actor) endTurn(view, actor, true);
    add(view, "note", event, { text: event.why, why: "restarted" });
  },
  "actor.finished"(view, event, actor) {
    if (!actor) return;
    actor.report = event.report;
    actor.status = event.report.status;
    actor.endedAt = view.at;
    readClock(view, actor, event.elapsed);
    view.holds.delete(actor.path);
    endTurn(view, actor, true);
    for (const call of actor.calls.values()) {
      settle(view, call.approval);
      settle(view, call.question);
      close(view, call.bar, true);
    }
    add(view, "report", event, { report: event.report });
    tell(view, actor.path, actor.parent ?? HUMAN, "reports", event.report.text || event.report.detail || event.report.status);
  },
  "model.requested"(view, event, actor) {
    if (!actor) return;
    endTurn(view, actor, true);
    readClock(view, actor, event.elapsed);
    view.waiting = false;
    actor.request = { seq: view.seq, at: view.at, model: event.model, purpose: event.purpose, turn: event.turn };
    actor.request.bar = open(view, actor, "turn", event.purpose === "turn" ? `turn ${event.turn + 1}` : event.purpose.replace("_", "-"));
  },
  "model.delta"(view, event, actor) {
    if (!actor) return;
    if (event.reset) actor.turn = [];
    const last = actor.turn.at(-1);
    if (last?.kind === event.kind && last.index === event.index) last.text += event.text;
    else actor.turn.push({ kind: event.kind, index: event.index, text: event.text });
  },
  "model.finished"(view, event, actor) {
    if (!actor) return;
    endTurn(view, actor);
    const calls = [];
    if (event.purpose !== "summary") {
      actor.calls = new Map();
      for (const { id, name, arguments: given } of event.tool_calls) {
        actor.calls.set(id, { id, name, arguments: given, state: "asked", output: "", diffs: [] });
        calls.push(id);
      }
    }
    add(view, "reply", event, {
      text: event.text, reasoning: event.reasoning, usage: event.usage, cost: event.cost_usd, seconds: event.seconds,
      finish: event.finish, purpose: event.purpose, turn: event.turn, model: event.model,
    });
    for (const id of calls) add(view, "call", event, { call: actor.calls.get(id) });
  },
  "model.retried"(view, event, actor) {
    if (actor) {
      endTurn(view, actor, true);
      actor.retry = { of: `${event.attempt + 2} of ${event.limit}`, since: view.at };
    }
    add(view, "trouble", event, { text: `${event.kind}: tried again after ${event.wait} s`, detail: event.message });
  },
  "model.failed"(view, event, actor) {
    if (actor) endTurn(view, actor, true);
    add(view, "trouble", event, { text: event.kind, detail: event.message });
  },
  "model.withdrawn"(view, event, actor) {
    if (actor) endTurn(view, actor, true);
    add(view, "trouble", event, { text: `turn ${event.turn + 1} does not count`, detail: event.why });
  },
  "tool.requested"(view, event, actor) {
    const call = callOf(actor, event.call_id);
    if (call) call.argumentsError = event.arguments_error;
  },
  "permission.decided"(view, event, actor) {
    const call = callOf(actor, event.call_id);
    if (!call) return;
    if (!call.verdict) actor.toolCalls += 1;
    call.verdict = event.verdict;
    call.rule = event.rule;
    call.by = event.by;
  },
  "approval.requested"(view, event, actor) {
    const call = callOf(actor, event.call_id);
    if (call) call.approval = event.id;
    const bar = actor ? open(view, actor, "human", `waits for you: ${event.name}`) : null;
    view.asked.set(event.id, { ...event, kind: "approval", since: view.at, open: true, bar });
    view.open += 1;
    tell(view, event.actor, HUMAN, "may I", event.name);
  },
  "approval.decided"(view, event) {
    const asked = view.asked.get(event.id);
    if (!asked || asked.decision) return;
    asked.decision = event.decision;
    asked.decidedBy = event.by;
    asked.denied = event.why;
    view.waiting = false;
    settle(view, event.id);
    const call = callOf(view.actors.get(asked.actor), asked.call_id);
    if (call) {
      call.decision = event;
      if (event.arguments) call.edited = event.arguments;
    }
    tell(view, HUMAN, asked.actor, event.decision === "allow" ? "approves" : "denies", event.why || asked.name);
  },
  "question.asked"(view, event, actor) {
    const call = callOf(actor, event.call_id);
    if (call) call.question = event.id;
    const bar = actor ? open(view, actor, "human", "waits for your answer") : null;
    view.asked.set(event.id, { ...event, kind: "question", since: view.at, open: true, bar });
    view.open += 1;
    tell(view, event.actor, HUMAN, "asks you", event.text);
  },
  "question.answered"(view, event) {
    const asked = view.asked.get(event.id);
    if (!asked || asked.answer !== undefined) return;
    asked.answer = event.answer;
    view.waiting = false;
    settle(view, event.id);
    tell(view, HUMAN, asked.actor, "answers", event.answer);
  },
  "tool.started"(view, event, actor) {
    const call = callOf(actor, event.call_id);
    if (!call) return;
    view.waiting = false;
    call.state = "running";
    call.startedAt = view.at;
    close(view, call.bar, true);
    call.bar = open(view, actor, "call", event.name);
  },
  "tool.output"(view, event, actor) {
    const call = callOf(actor, event.call_id);
    if (call) call.output = (call.output + event.text).slice(-4000);
  },
  "tool.retried"(view, event, actor) {
    if (actor) actor.toolCalls += 1;
    add(view, "trouble", event, { text: `${event.name}: tried again after ${event.wait} s`, detail: event.message });
  },
  "tool.finished"(view, event, actor) {
    const call = callOf(actor, event.call_id);
    if (!call || call.state === "done") return;
    call.state = "done";
    call.result = event.result;
    call.isError = event.is_error;
    call.ended = event.kind;
    call.seconds = event.seconds;
    call.full = event.full;
    settle(view, call.approval);
    settle(view, call.question);
    close(view, call.bar, event.is_error);
  },
  "file.changed"(view, event, actor) {
    view.changes.push({ seq: view.seq, actor: event.actor, path: event.path, diff: event.diff });
    callOf(actor, event.call_id)?.diffs.push({ path: event.path, diff: event.diff });
  },
  "files.restored"(view, event) {
    add(view, "note", event, { text: event.paths.join("\n"), why: `files taken back to event ${event.to}` });
  },
  "notes.changed"(view, event, actor) {
    if (actor) actor.notes = event.notes;
  },
  "skill.loaded"(view, event, actor) {
    if (actor && !actor.skills.includes(event.name)) actor.skills.push(event.name);
    add(view, "note", event, { text: event.text, why: `skill ${event.name}` });
  },
  "message.sent"(view, event) {
    tell(view, event.actor, event.to, "tells", event.text);
  },
  "message.received"(view, event) {
    if (!event.call_id) add(view, "message", event, { text: event.text, from: event.sender });
  },
  "steer.received"(view, event) {
    if (event.entered) add(view, "message", event, { text: event.text, from: event.by || HUMAN });
    else tell(view, HUMAN, event.actor, event.interrupt ? "interrupts" : "says", event.text);
  },
  "note.added"(view, event) {
    add(view, "note", event, { text: event.text, why: event.why || "note" });
  },
  "budget.reserved"(view, event, actor) {
    actor?.reserved.set(event.id, event);
  },
  "budget.settled"(view, event, actor) {
    if (!actor) return;
    const reserved = actor.reserved.get(event.id);
    actor.reserved.delete(event.id);
    const usage = { ...actor.usage };
    for (const name of ["input", "output", "cached_input", "reasoning"]) usage[name] += event.usage[name] ?? 0;
    usage.estimated ||= Boolean(event.usage.estimated);
    actor.usage = usage;
    actor.cost = actor.cost === null || event.cost_usd === null ? null : actor.cost + event.cost_usd;
    if (event.replied && reserved?.purpose !== "summary") actor.steps += 1;
  },
  "budget.refused"(view, event) {
    add(view, "trouble", event, { text: `no more: ${event.limit} of ${event.scope}`, detail: event.message });
  },
  "budget.overrun"(view, event) {
    add(view, "trouble", event, { text: `${event.limit} of ${event.scope} was overrun by ${event.by}`, detail: "" });
  },
  "loop.nudged": alert,
  "loop.blocked": alert,
  "loop.stopped": alert,
  "context.compacted"(view, event) {
    add(view, "note", event, { text: event.steps.join("\n"), why: `history made smaller: ${event.before} to ${event.after} tokens` });
  },
  "prefix.changed"(view, event) {
    add(view, "note", event, { text: event.why, why: "prompt or tools changed" });
  },
  "hook.finished"(view, event) {
    if (event.outcome !== "none" || event.message || event.context)
      add(view, "note", event, { text: event.message || event.context, why: `hook ${event.hook} (${event.event}): ${event.outcome}` });
  },
  "mcp.connected"(view, event) {
    view.servers.set(event.server, "connected");
  },
  "mcp.lost"(view, event) {
    view.servers.set(event.server, `lost: ${event.why}`);
  },
  warning(view, event) {
    view.warnings.push({ seq: view.seq, at: view.at, actor: event.actor, text: event.text });
  },
  gap(view, event) {
    view.lost += event.lost;
  },
};

function alert(view, event, actor) {
  const found = { seq: view.seq, at: view.at, actor: event.actor, type: event.type, why: event.why, note: event.note ?? "",
    about: event.calls, callId: event.call_id ?? "", kind: event.kind, times: event.times };
  view.alerts.push(found);
  if (actor) {
    actor.alerts += 1;
    // The last word names no call of its own: it is about what the words before it were about.
    actor.warnedOf = found.callId ||= actor.warnedOf ?? "";
  }
  add(view, "alert", event, { alert: found });
}
