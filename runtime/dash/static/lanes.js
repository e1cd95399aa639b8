// Where the bars of a timeline go: one band an actor, as many lanes in it as were ever busy at once; pure.

/** Bands in the order of `paths`, each `{path, lanes, top}`, and the bars as `{...bar, lane}` with the lane counted over all. */
export function layOut(bars, paths) {
  const bands = new Map(paths.map((path) => [path, []]));
  const placed = [];
  for (const bar of bars) {
    const lanes = bands.get(bar.actor);
    if (!lanes) continue;
    // A bar that is open keeps its lane for good.
    let lane = lanes.findIndex((end) => end <= bar.from);
    if (lane < 0) lane = lanes.length;
    lanes[lane] = bar.to ?? Infinity;
    placed.push({ bar, lane });
  }
  let top = 0;
  const rows = paths.map((path) => {
    const row = { path, top, lanes: Math.max(1, bands.get(path).length) };
    top += row.lanes;
    return row;
  });
  const tops = new Map(rows.map((row) => [row.path, row.top]));
  for (const each of placed) each.lane += tops.get(each.bar.actor);
  return { rows, placed, lanes: top };
}

/** Round steps of time for an axis with at most `most` marks over `seconds`. */
export function timeStep(seconds, most) {
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400];
  return steps.find((step) => seconds / step <= most) ?? 604_800;
}
