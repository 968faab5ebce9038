// The output of a run: the summary, lcov, and which test file reaches which line.

/** The points of one source with their counts; omits points that no build contains if any build contains the file. */
export function countsOf({ points, counts, known }) {
  const isLoaded = known.includes(true);
  return points.flatMap((point, index) => {
    const { instead } = point;
    if (isLoaded && !known[instead ?? index]) return [];
    if (instead === undefined) return [{ ...point, count: counts[index] }];
    // The count past an `if` without `else` is the count of the `if` minus that of its body.
    const statement = points.findIndex(({ kind, start }) => kind === "statement" && start === point.start);
    return [{ ...point, count: Math.max(0, counts[statement] - counts[instead]) }];
  });
}

function lineCounts(points) {
  const lines = new Map();
  for (const { kind, line, count } of points) {
    if (kind === "statement") lines.set(line, Math.max(lines.get(line) ?? 0, count));
  }
  return new Map([...lines].toSorted(([a], [b]) => a - b));
}

/** `{ lines, functions, branches }`, each `{ covered, total }`. */
export function summaryOf(sources) {
  const summary = { lines: [], functions: [], branches: [] };
  for (const source of sources.values()) {
    const points = countsOf(source);
    summary.lines.push(...lineCounts(points).values());
    for (const { kind, count } of points) {
      if (kind === "function") summary.functions.push(count);
      if (kind === "branch") summary.branches.push(count);
    }
  }
  return Object.fromEntries(
    Object.entries(summary).map(([name, counts]) => [
      name,
      { covered: counts.filter((count) => count > 0).length, total: counts.length },
    ]),
  );
}

export function lcovOf(sources) {
  const out = [];
  for (const [file, source] of sources) {
    const points = countsOf(source);
    const functions = points.filter(({ kind }) => kind === "function");
    const branches = points.filter(({ kind }) => kind === "branch");
    const lines = lineCounts(points);
    const hit = (list) => list.filter(({ count }) => count > 0).length;
    out.push("TN:", `SF:${file}`);
    out.push(...functions.map(({ line, name, start }) => `FN:${line},${name}@${start}`));
    out.push(...functions.map(({ name, start, count }) => `FNDA:${count},${name}@${start}`));
    out.push(`FNF:${functions.length}`, `FNH:${hit(functions)}`);
    out.push(...branches.map(({ line, branch, arm, count }) => `BRDA:${line},${branch},${arm},${count}`));
    out.push(`BRF:${branches.length}`, `BRH:${hit(branches)}`);
    out.push(...[...lines].map(([line, count]) => `DA:${line},${count}`));
    out.push(`LF:${lines.size}`, `LH:${[...lines.values()].filter((count) => count > 0).length}`, "end_of_record");
  }
  return `${out.join("\n")}\n`;
}

/** By source and offset of a statement, the recorded test files that reach it, as indexes into `tests`. */
export function reachedOf(sources, tests) {
  const number = new Map(tests.map((test, at) => [test, at]));
  const files = {};
  for (const [file, source] of sources) {
    const statements = source.points.flatMap(({ kind, start }, index) =>
      kind === "statement"
        ? [[start, [...source.tests[index]].map((test) => number.get(test)).toSorted((a, b) => a - b)]]
        : [],
    );
    files[file] = Object.fromEntries(statements);
  }
  return { tests, files };
}
