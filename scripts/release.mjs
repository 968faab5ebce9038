/** Prepares a release, or checks a release before publishing. Prints the fault and exits 1. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";

const SEMVER = /^(\d+)\.(\d+)\.(\d+)(?:-[\d.A-Za-z-]+)?$/;
/** Heading of the top section. A heading with a version is for that version only. */
const UNRELEASED = /^## (?:Unreleased|(\d\S*) \(unreleased\))$/m;

class Refusal extends Error {}

const USAGE = `Usage: npm run release -- VERSION
       node scripts/release.mjs --notes
       node scripts/release.mjs --verify TAG --owner NAME

VERSION        move the unreleased entries of CHANGELOG.md under VERSION, set VERSION in package.json and in the
               catalogues, commit and tag. Nothing is published until the tag is pushed
--notes        print the entries of the version in package.json
--verify TAG   check the requirements of publishing; NAME is the owner of the repository
--root FOLDER  another clone`;

const { positionals, values } = readArguments(USAGE, {
  allowPositionals: true,
  options: {
    notes: { type: "boolean" },
    owner: { type: "string" },
    root: { type: "string" },
    verify: { type: "string" },
  },
});
const root = values.root ?? join(import.meta.dirname, "..");
const read = (file) => readFileSync(join(root, file), "utf8");
const run = (command, ...args) => execFileSync(command, args, { cwd: root, encoding: "utf8" }).trim();
const manifest = () => JSON.parse(read("package.json"));

try {
  if (values.notes) process.stdout.write(notesOf(read("CHANGELOG.md"), manifest().version));
  else if (values.verify !== undefined) verify(values.verify, values.owner ?? "");
  else prepare(positionals[0] ?? "");
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}

function prepare(version) {
  const present = manifest().version;
  if (!SEMVER.test(version)) throw new Refusal(`"${version}" is not a version: npm run release -- 1.2.3`);
  if (isLower(version, present)) throw new Refusal(`${version} is lower than ${present}, the version in package.json`);
  if (run("git", "status", "--porcelain") !== "") throw new Refusal("there are uncommitted changes");
  if (run("git", "tag", "--list", `v${version}`) !== "") throw new Refusal(`the tag v${version} exists`);
  writeFileSync(join(root, "CHANGELOG.md"), released(read("CHANGELOG.md"), version, new Date()));
  run("npm", "version", version, "--no-git-tag-version", "--allow-same-version", "--ignore-scripts");
  run(process.execPath, join(import.meta.dirname, "catalogues.mjs"), "--root", root);
  run("git", "add", "--all");
  run("git", "commit", "--quiet", "--message", `release: publish ${version}`);
  run("git", "tag", "--annotate", `v${version}`, "--message", `Version ${version}`);
  console.log(`Committed and tagged. To publish: git push --follow-tags`);
}

/** Compares the three numbers, without prereleases. */
function isLower(version, other) {
  const [one, two] = [version, other].map((each) => SEMVER.exec(each)?.slice(1, 4).map(Number) ?? []);
  const at = one.findIndex((part, index) => part !== two[index]);
  return at >= 0 && one[at] < two[at];
}

function released(text, version, date) {
  const heading = UNRELEASED.exec(text);
  if (!heading) throw new Refusal('CHANGELOG.md has no section "## Unreleased"');
  const [line, prepared = version] = heading;
  if (prepared !== version) throw new Refusal(`CHANGELOG.md prepares ${prepared}, not ${version}`);
  if (!/^- /m.test(sectionAt(text, heading))) throw new Refusal("CHANGELOG.md has no unreleased entries");
  const after = text.slice(heading.index + line.length);
  return `${text.slice(0, heading.index)}## Unreleased\n\n## ${version} (${date.toISOString().slice(0, 10)})${after}`;
}

/** Returns the text from below the heading to the next heading. */
function sectionAt(text, { 0: heading, index }) {
  const [section] = text.slice(index + heading.length).split(/^## /m);
  return section.trim();
}

function notesOf(text, version) {
  const heading = new RegExp(`^## ${version.replaceAll(".", String.raw`\.`)} \\(\\d{4}-\\d\\d-\\d\\d\\)$`, "m").exec(
    text,
  );
  if (!heading)
    throw new Refusal(`CHANGELOG.md has no entries of ${version} with a date: npm run release -- ${version}`);
  return `${sectionAt(text, heading)}\n`;
}

function verify(tag, owner) {
  const { mcpName, repository, version } = manifest();
  if (tag !== `v${version}`) throw new Refusal(`the tag ${tag} is not v${version}, the version in package.json`);
  notesOf(read("CHANGELOG.md"), version);
  // npm refuses provenance for another repository, and the registry refuses a name of another repository.
  if (repository === undefined) throw new Refusal("package.json has no repository, which npm needs for provenance");
  const namespace = `io.github.${owner}/`;
  if (!mcpName.toLowerCase().startsWith(namespace.toLowerCase())) {
    throw new Refusal(
      `mcpName in package.json is ${mcpName}: the registry takes only ${namespace}… from this repository`,
    );
  }
}
