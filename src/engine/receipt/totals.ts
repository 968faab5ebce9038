import type { CommandRun } from "../../domain/receipt.ts";
import { RUNNERS, type Runner } from "./checks.ts";

/**
 * Reads totals from the summary of a runner. Returns totals only for an output with exactly one summary whose numbers add up:
 * a test can print a line that looks like a summary.
 */

export type Totals = Pick<CommandRun, "failed" | "passed" | "skipped">;

interface Output {
  readonly text: string;
  /** True if lines can be missing. */
  readonly isPartial: boolean;
}

/** Reads the totals of `runner`, or of any runner if the command does not name one (`npm test`). */
export function readTotals(output: string, runner: Runner | undefined, isPartial: boolean): Totals | undefined {
  // oxlint-disable-next-line no-control-regex -- colours of a terminal
  const text = output.replaceAll(/\u001b\[[\d;]*m/g, "").replaceAll("\r\n", "\n");
  const runners = runner === undefined ? RUNNERS : [runner];
  const found = runners.flatMap((each) => READERS[each]({ text, isPartial }));
  const [totals, ...others] = found;
  return others.length === 0 && totals !== "unclear" ? totals : undefined;
}

/** Returns the totals of each summary in the output; `unclear` for a summary that cannot be read. */
type Reader = (output: Output) => (Totals | "unclear")[];

type Counts = ReadonlyMap<string, number>;

/** Reads `1 failed | 3 passed`, `1 failed, 3 passed`. Returns `undefined` for anything else. */
function countsIn(list: string, separator: RegExp): Counts | undefined {
  const parts = list.split(separator).map((part) => /^(\d+) ([a-z ]+?)s?$/.exec(part.trim()));
  if (!parts.every((part) => part !== null)) return undefined;
  return new Map(parts.map(([, count, word]) => [word ?? "", Number(count)]));
}

/** Adds the counts of words; `_` in a word is a space. */
function sumOf(counts: Counts, words: string): number {
  return words.split(" ").reduce((sum, word) => sum + (counts.get(word.replaceAll("_", " ")) ?? 0), 0);
}

function isWithin(counts: Counts, words: string): boolean {
  const known = words.split(" ").map((word) => word.replaceAll("_", " "));
  return [...counts.keys()].every((word) => known.includes(word));
}

/** Line `Tests  1 failed | 3 passed (4)`, right behind the line of test files. */
const VITEST = /^[ \t]*Test Files[ \t]{2}\S.*\n[ \t]*Tests[ \t]{2}(\S.*?) \((\d+)\)[ \t]*$/gm;

const vitest: Reader = ({ text }) =>
  [...text.matchAll(VITEST)].map(([, list = "", total]) => {
    const counts = countsIn(list, / \| /);
    if (!counts || !isWithin(counts, "failed passed skipped todo expected_fail")) return "unclear";
    if (sumOf(counts, "failed passed skipped todo expected_fail") !== Number(total)) return "unclear";
    return totalsOf(counts, "passed", "failed", "skipped todo");
  });

/** Line `Tests: 1 failed, 3 passed, 4 total`, right behind the line of suites. */
const JEST = /^Test Suites:[ \t]+\S.* total\nTests:[ \t]+(\S.*), (\d+) total$/gm;

const jest: Reader = ({ text }) =>
  [...text.matchAll(JEST)].map(([, list = "", total]) => {
    const counts = countsIn(list, /, /);
    if (!counts || !isWithin(counts, "failed passed pending skipped todo")) return "unclear";
    if (sumOf(counts, "failed passed pending skipped todo") !== Number(total)) return "unclear";
    return totalsOf(counts, "passed", "failed", "pending skipped todo");
  });

/** Summary of the reporters `spec`, `dot`, `list`: passing, then pending and failing if there are any. */
const MOCHA = /^ {2}(\d+) passing \(\d+(?:ms|s|m|h)\)$(?:\n {2}(\d+) pending$)?(?:\n {2}(\d+) failing$)?/gm;

const mocha: Reader = ({ text }) =>
  [...text.matchAll(MOCHA)].map(([, passed, skipped = "0", failed = "0"]) => {
    return { passed: Number(passed), failed: Number(failed), skipped: Number(skipped) };
  });

/** Eight lines, in the reporters `spec` and `tap`. */
const NODE =
  /^(?:# |ℹ )tests (\d+)\n(?:# |ℹ )suites \d+\n(?:# |ℹ )pass (\d+)\n(?:# |ℹ )fail (\d+)\n(?:# |ℹ )cancelled (\d+)\n(?:# |ℹ )skipped (\d+)\n(?:# |ℹ )todo (\d+)\n(?:# |ℹ )duration_ms [\d.]+$/gm;

const node: Reader = ({ text }) =>
  [...text.matchAll(NODE)].map(([, ...counts]) => {
    const [total = 0, passed = 0, failed = 0, cancelled = 0, skipped = 0, todo = 0] = counts.map(Number);
    if (passed + failed + cancelled + skipped + todo !== total) return "unclear";
    return { passed, failed: failed + cancelled, skipped: skipped + todo };
  });

/** Last line, between `=` or, with `-q`, without. */
const PYTEST = /^(?:=+ )?(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s(?: \([\d:]+\))?(?: =+)?$/gm;
const PYTEST_WORDS = "failed passed skipped deselected xfailed xpassed warning error rerun";

const pytest: Reader = ({ text }) =>
  [...text.matchAll(PYTEST)].map(([, list = ""]) => {
    const counts = countsIn(list, /, /);
    if (!counts || !isWithin(counts, PYTEST_WORDS)) return "unclear";
    // Tests that fail or pass against their mark (`xfail`) are neither.
    return totalsOf(counts, "passed", "failed error", "skipped");
  });

const CARGO =
  /^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; \d+ filtered out; finished in [\d.]+s$/gm;

/** Cargo prints a summary for each binary with tests, so each is needed. */
const cargo: Reader = ({ isPartial, text }) => {
  const lines = [...text.matchAll(CARGO)].map(([, ...counts]) => counts.map(Number));
  if (lines.length === 0) return [];
  if (isPartial) return ["unclear"];
  const sum = (at: number) => lines.reduce((total, counts) => total + (counts[at] ?? 0), 0);
  return [{ passed: sum(0), failed: sum(1), skipped: sum(2) }];
};

const PHPUNIT = /^OK \((\d+) tests?, \d+ assertions?\)$|^(Tests: \d+, Assertions: \d+(?:, [A-Z][A-Za-z ]+: \d+)*)\.$/gm;

const phpunit: Reader = ({ text }) =>
  [...text.matchAll(PHPUNIT)].map(([, all, list]) => {
    if (list === undefined) return { passed: Number(all), failed: 0 };
    const counts = new Map(
      list.split(", ").map((part) => [part.replace(/: \d+$/, ""), Number(/\d+$/.exec(part)?.[0])]),
    );
    const [failed, skipped] = [sumOf(counts, "Errors Failures"), sumOf(counts, "Skipped Incomplete")];
    const passed = sumOf(counts, "Tests") - failed - skipped;
    return passed < 0 ? "unclear" : { passed, failed, skipped };
  });

const RSPEC =
  /^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$/gm;

const rspec: Reader = ({ text }) =>
  [...text.matchAll(RSPEC)].map(([, ...found]) => {
    const counts = found.map((count: string | undefined) => Number(count ?? 0));
    const [total = 0, failures = 0, skipped = 0, errors = 0] = counts;
    const passed = total - failures - skipped;
    return passed < 0 ? "unclear" : { passed, failed: failures + errors, skipped };
  });

const READERS: Readonly<Record<Runner, Reader>> = { cargo, jest, mocha, node, phpunit, pytest, rspec, vitest };

function totalsOf(counts: Counts, passed: string, failed: string, skipped: string): Totals {
  return { passed: sumOf(counts, passed), failed: sumOf(counts, failed), skipped: sumOf(counts, skipped) };
}
