// Counts, money, times and dates for a person; pure.

/** A count in three digits or so: 950, 18.4k, 200k, 1.2M. */
export function count(value) {
  if (value < 1000) return String(Math.round(value));
  if (value < 999_950) return `${(value / 1000).toFixed(1).replace(/\.0$/, "")}k`;
  return `${(value / 1e6).toFixed(1).replace(/\.0$/, "")}M`;
}

/** Dollars; null is a price nobody knows. */
export function cost(value) {
  if (value === null || value === undefined) return "unknown";
  if (value === 0) return "$0";
  return value < 0.01 ? `$${value.toFixed(4).replace(/0+$/, "")}` : `$${value.toFixed(2)}`;
}

/** A stretch of seconds: 0.4 s, 38 s, 2:05 min, 1:02:05 h. */
export function span(seconds) {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${two(whole % 60)} min`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)} h`;
}

/** How long ago a moment was. */
export function ago(at, now) {
  const passed = Math.max(0, now - at);
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.round(passed / 60)} min ago`;
  if (passed < 86_400) return `${Math.round(passed / 3600)} h ago`;
  return passed < 172_800 ? "yesterday" : `${Math.round(passed / 86_400)} days ago`;
}

/** The time of day, to the second. */
export function clock(at) {
  return new Date(at * 1000).toTimeString().slice(0, 8);
}

const UNITS = {
  max_steps: "steps", total_steps: "steps in all", token_budget: "tokens", input_budget: "input tokens",
  output_budget: "output tokens", cost_budget: "cost", timeout: "time", max_tool_calls: "tool calls",
};

/** The name of a limit for a person. */
export function limitName(limit) {
  return UNITS[limit] ?? limit;
}

/** An amount of what a limit counts. */
export function amount(limit, value) {
  if (limit === "cost_budget") return cost(value);
  if (limit === "timeout") return span(value);
  return count(value);
}

/** The first `most` lines of a text, and how many are left. */
export function firstLines(text, most) {
  let end = -1;
  for (let line = 0; line < most; line++) {
    const next = text.indexOf("\n", end + 1);
    if (next < 0) return { text, more: 0 };
    end = next;
  }
  let more = 1;
  for (let at = text.indexOf("\n", end + 1); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) more += 1;
  return end === text.length - 1 ? { text, more: 0 } : { text: text.slice(0, end), more };
}

/** The first line of a text, at most so long. */
export function oneLine(text, most = 200) {
  const line = String(text ?? "").trim().split("\n", 1)[0];
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
