import { diffArrays } from "diff";
import type { FileChange, TestChanges } from "../../domain/receipt.ts";
import { isTestFile, testLanguageOf, testsIn, type TestsIn } from "./test-languages.ts";

/** Counts changes of tests by the old and new texts of changed files. */

/** `before` and `after` are absent if there is no such file, or if its text is not known. */
export interface ChangedText {
  readonly path: string;
  readonly from?: string | undefined;
  readonly change: FileChange["change"];
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

interface Counted {
  readonly path: string;
  readonly removed: string[];
  readonly added: string[];
  readonly changes: TestChanges;
}

/**
 * Returns the changes of each file that has any. A declaration that is found again in another place of `files` was moved, and
 * one with a new name in its place was renamed: neither was removed.
 */
export function testChangesOf(files: readonly ChangedText[]): Map<string, TestChanges> {
  const counted = files.flatMap(count);
  const moved = counted.flatMap(({ added }) => added);
  const found = new Map<string, TestChanges>();
  for (const { changes, path, removed } of counted) {
    const gone = removed.filter((name) => !take(moved, name)).length;
    const all: TestChanges = { ...changes, ...(gone > 0 && { removed: gone }) };
    if (Object.keys(all).length > 0) found.set(path, all);
  }
  return found;
}

const NONE: TestsIn = { declared: [], skips: [], focuses: [] };

function count(changed: ChangedText): Counted[] {
  const { after, before, change, from, path } = changed;
  const language = testLanguageOf(path);
  const former = testLanguageOf(from ?? path);
  const earlier = before !== undefined && former ? testsIn(before, former) : NONE;
  const hadTests = earlier.declared.length > 0;
  if (change === "deleted") return isTestFile(path) || hadTests ? [whole(path, { deleted: 1 })] : [];
  // A new name that no runner of tests looks for takes the tests away.
  if (!language) return hadTests ? [whole(path, { emptied: 1 })] : [];
  if (after === undefined || (change !== "added" && before === undefined)) return [];
  return [compareTests(path, earlier, testsIn(after, language))];
}

const whole = (path: string, changes: TestChanges): Counted => ({ path, removed: [], added: [], changes });

function compareTests(path: string, earlier: TestsIn, later: TestsIn): Counted {
  const skipped = without(later.skips, earlier.skips).length;
  const only = without(later.focuses, earlier.focuses).length;
  const isEmptied = earlier.declared.length > 0 && later.declared.length === 0;
  const changes = { ...(isEmptied && { emptied: 1 }), ...(skipped > 0 && { skipped }), ...(only > 0 && { only }) };
  return { path, ...changedNames(earlier.declared, later.declared), changes };
}

/** Maximum number of edits between two lists. More count by number alone. */
const MAX_EDITS = 2_000;

/** Returns names in one list only. Pairs a removed with an added name in the same place, as renamed. */
function changedNames(earlier: readonly string[], later: readonly string[]): { added: string[]; removed: string[] } {
  const parts = diffArrays([...earlier], [...later], { maxEditLength: MAX_EDITS });
  const [added, removed]: [string[], string[]] = [[], []];
  let gone: string[] = [];
  let come: string[] = [];
  const close = () => {
    const fresh = come.filter((name) => !take(gone, name));
    removed.push(...gone.slice(fresh.length));
    added.push(...fresh.slice(gone.length));
    [gone, come] = [[], []];
  };
  for (const part of parts ?? [
    { removed: true, added: false, value: [...earlier] },
    { removed: false, added: true, value: [...later] },
  ]) {
    if (part.removed) gone = [...gone, ...part.value];
    else if (part.added) come = [...come, ...part.value];
    else close();
  }
  close();
  // A declaration moved within the file.
  return { added: without(added, removed), removed: without(removed, added) };
}

/** Returns `names` less `others`, each as often as it is there. */
function without(names: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return names.filter((name) => !take(left, name));
}

/** Removes `name` from `names` once. False if it is not there. */
function take(names: string[], name: string): boolean {
  const at = names.indexOf(name);
  if (at >= 0) names.splice(at, 1);
  return at >= 0;
}
