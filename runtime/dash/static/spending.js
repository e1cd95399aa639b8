// What was spent, as the server tells it, laid out for a plot and a table: days in a row, groups beside each other; pure.

const DAY = 86_400_000;
const MOST = 6;
const OTHERS = "others";

/** What can be plotted, each as a number of a row. */
export const MEASURES = {
  tokens: (row) => row.input + row.output,
  cost: (row) => row.cost_usd,
  "model calls": (row) => row.calls,
};

/** The days up to `today` (YYYY-MM-DD), oldest first. */
export function lastDays(today, number) {
  const end = Date.parse(`${today}T00:00:00Z`);
  return Array.from({ length: number }, (_, index) => new Date(end - (number - 1 - index) * DAY).toISOString().slice(0, 10));
}

/**
 * Rows by day and by `by` (agent, model, or nothing): `{days, groups: [{name, values, total}], unpriced}`, the biggest
 * group first, the smaller ones together. `unpriced` counts calls whose price nobody knows.
 */
export function layOut(rows, { measure, by, days }) {
  const place = new Map(days.map((day, index) => [day, index]));
  const found = new Map();
  let unpriced = 0;
  for (const row of rows) {
    const index = place.get(row.day);
    if (index === undefined) continue;
    unpriced += row.unpriced;
    const name = by ? row[by] : "all";
    if (!found.has(name)) found.set(name, { name, values: days.map(() => 0), total: 0 });
    const group = found.get(name);
    const value = MEASURES[measure](row);
    group.values[index] += value;
    group.total += value;
  }
  const groups = [...found.values()].sort((one, two) => two.total - one.total || (one.name < two.name ? -1 : 1));
  if (groups.length <= MOST) return { days, groups, unpriced };
  const rest = { name: OTHERS, values: days.map(() => 0), total: 0 };
  for (const group of groups.splice(MOST - 1)) {
    group.values.forEach((value, index) => { rest.values[index] += value; });
    rest.total += group.total;
  }
  return { days, groups: [...groups, rest], unpriced };
}

/** Each group on top of those before it, so that bars drawn from the last to the first cover each other rightly. */
export function stacked(groups) {
  const sums = groups[0]?.values.map(() => 0) ?? [];
  return groups.map((group) => group.values.map((value, index) => (sums[index] += value)));
}
