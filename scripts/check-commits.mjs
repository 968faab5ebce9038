/**
 * Checks the subjects of commits since this file was added: `area: imperative change`, at most 72 characters, no merge commits.
 * Prints one line per violation and exits 1. A shallow clone shows fewer commits: CI fetches all of them.
 */
import { spawnSync } from "node:child_process";

const MAX_SUBJECT_CHARS = 72;
const SUBJECT = /^[a-z][a-z0-9-]*(?:, [a-z][a-z0-9-]*)*: [a-z0-9`"].*[^.\s]$/;
/** First words that are not imperative. */
const NO_IMPERATIVE = /: (?:(?!embed|feed|need|shed|speed|bring)[a-z]+(?:ed|ing)|wip|fixes|adds|removes|changes)\b/;

const git = (...args) => spawnSync("git", args, { encoding: "utf8" }).stdout.trim();

function faultOf(subject, parents) {
  if (parents.includes(" ")) return "is a merge commit: rebase instead";
  if (subject.length > MAX_SUBJECT_CHARS)
    return `has ${String(subject.length)} characters: at most ${String(MAX_SUBJECT_CHARS)}`;
  if (!SUBJECT.test(subject)) return "is not of the form `area: change`";
  return NO_IMPERATIVE.test(subject) ? "does not begin with an imperative" : undefined;
}

/** `undefined` in a shallow clone, or before this file is committed. */
const added = git("log", "--diff-filter=A", "--format=%H", "-1", "--", "scripts/check-commits.mjs") || undefined;
const isWhole = added !== undefined && git("rev-parse", "--verify", "--quiet", `${added}~1`) !== "";
const commits = git("log", "--format=%h\t%p\t%s", ...(isWhole ? [`${added}~1..HEAD`] : ["-1"]));
let faults = 0;
for (const line of commits.split("\n").filter(Boolean)) {
  const [hash, parents, subject] = line.split("\t");
  const fault = faultOf(subject, parents);
  if (fault === undefined) continue;
  faults++;
  console.log(`${hash} "${subject}" ${fault}`);
}
process.exit(faults === 0 ? 0 : 1);
