// The test files that import a file of src, by distance: the nearest are the likeliest to detect a fault in it.
import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { filesIn } from "../test-coverage/files.mjs";
import { parse, walk } from "../test-coverage/source-points.mjs";

/** The project files that a file imports at run time, without imports of types. */
function importsOf(root, file) {
  const found = [];
  walk(parse(readFileSync(join(root, file), "utf8"), file), (node) => {
    if (node.importKind === "type" || node.exportKind === "type") return false;
    const { source } = node;
    if (typeof source?.value === "string" && source.value.startsWith(".")) {
      found.push(posix.join(dirname(file), source.value));
    }
    return undefined;
  });
  return found;
}

export function importersIn(root) {
  const importers = new Map();
  for (const file of [...filesIn(root, "src"), ...filesIn(root, "test")]) {
    for (const imported of importsOf(root, file)) importers.set(imported, [...(importers.get(imported) ?? []), file]);
  }
  return importers;
}

/** The test files below `folder` that import `file`, the nearest first. */
export function testsNear(importers, file, folder) {
  const distances = new Map([[file, 0]]);
  for (const [each, distance] of distances) {
    for (const importer of importers.get(each) ?? []) {
      if (!distances.has(importer)) distances.set(importer, distance + 1);
    }
  }
  const tests = [...distances].filter(([each]) => each.startsWith(folder) && each.endsWith(".test.ts"));
  return tests.toSorted(([, a], [, b]) => a - b).map(([each]) => each);
}
