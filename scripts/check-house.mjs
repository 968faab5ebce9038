// Checks import direction, cycles, names and small files in src/ against house-rules.json; the page of the console has its own
// house-rules.json. Prints one line per violation and exits 1, or one line with counts. Finds imports by pattern, which is safe
// with prettier's layout: doubtful imports are reported.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments } from "./arguments.mjs";

const USAGE = `Usage: node scripts/check-house.mjs [FOLDER]

FOLDER has the house-rules.json and the src/ to check. Default: this repository.`;

const CODE = /\.[cm]?[jt]sx?$/;
const STATEMENT = /^import\s/gm;
const STATIC = /^import\s+(?:[^"']*?\bfrom\s+)??["']([^"']+)["']/gm;
const EXPORT = /^export\s+(?:type\s+)?(?:\*(?:\s+as\s+[\w$]+)?|\{[^}]*\})\s+from\s+["']([^"']+)["']/gm;
const DYNAMIC = [
  /\bimport\s*\(\s*["'`]([^"'`$]+)["'`]/g,
  /\brequire(?:\.resolve)?\s*\(\s*["'`]([^"'`$]+)["'`]/g,
  /\bimport\.meta\.resolve\s*\(\s*["'`]([^"'`$]+)["'`]/g,
];
const COMPUTED = /\bimport\s*\(\s*(?!["']|`[^`$]*`)/g;

const { positionals, refuse } = readArguments(USAGE, { allowPositionals: true });
const [root = join(dirname(fileURLToPath(import.meta.url)), "..")] = positionals;
if (!existsSync(join(root, "house-rules.json"))) refuse(`There is no house-rules.json in "${root}".`);
const house = JSON.parse(readFileSync(join(root, "house-rules.json"), "utf8"));
const violations = [];

/** Returns every file below src as a posix path relative to src. Reports folders that are too deep, and bad names. */
function walk(folder = "") {
  const files = [];
  const found = [];
  for (const entry of readdirSync(join(root, "src", folder), { withFileTypes: true })) {
    const path = posix.join(folder, entry.name);
    checkName(path, entry.name);
    if (entry.isDirectory()) found.push(...walk(path));
    else files.push(path);
  }
  const where = posix.join("src", folder);
  const depth = folder === "" ? 0 : folder.split("/").length;
  if (depth > house.maxDepth) {
    const most = `at most ${house.maxDepth} below src`;
    violations.push(
      `${where} is ${depth} folders deep: ${most}. Move its files up, or give their subject a higher folder`,
    );
  }
  return [...files, ...found];
}

function checkName(path, name) {
  const banned = name.split(/[-._]/).find((word) => house.bannedNames.includes(word.toLowerCase()));
  if (banned !== undefined) violations.push(`src/${path} is named "${banned}": name it for what it decides`);
}

/** Removes comments but keeps lines, so that a word in prose is not an import. */
function withoutComments(text) {
  return text
    .replace(/\/\*.*?\*\//g, "")
    .replace(/^\s*(?:\/\/|\/\*|\*\s|\*\/|\*$).*$/gm, "")
    .replace(/\s\/\/\s.*$/gm, "");
}

/** Returns each import of a file as { specifier, line, isType }. `specifier` is null if the module's name cannot be read. */
function importsOf(text) {
  const code = withoutComments(text);
  const found = new Map();
  const note = (match, specifier) => {
    const line = code.slice(0, match.index).split("\n").length;
    found.set(`${line} ${specifier}`, { specifier, line, isType: /^(?:import|export)\s+type\b/.test(match[0]) });
  };
  const read = [...code.matchAll(STATIC)];
  for (const pattern of [STATIC, EXPORT, ...DYNAMIC]) {
    for (const match of code.matchAll(pattern)) note(match, match[1]);
  }
  for (const match of code.matchAll(COMPUTED)) note(match, null);
  for (const match of code.matchAll(STATEMENT)) {
    if (!read.some(({ index }) => index === match.index)) note(match, null);
  }
  return [...found.values()];
}

const matches = (specifier, pattern) =>
  pattern.endsWith("*")
    ? specifier.startsWith(pattern.slice(0, -1))
    : specifier === pattern || specifier.startsWith(`${pattern}/`);

/** Returns the row of house-rules.json for a file: its first folder, or the file itself at the root of src. */
const roomOf = (file) => file.split("/")[0];

/** Returns the reason against importing `target`, or `undefined`. From outside src only types may be imported. */
function fileFault(room, target, files, isType) {
  if (target.startsWith("../")) {
    const { beyond = [] } = house;
    if (!beyond.some((allowed) => matches(target, allowed)))
      return "an import must stay inside src. Move what is needed into src";
    return isType ? undefined : "of what lies beyond src only types may be imported. Use import type";
  }
  if (!files.has(target)) return "no such file in src. Correct the path";
  const { imports } = house.folders[room];
  if (roomOf(target) === room || imports.some((allowed) => target === allowed || roomOf(target) === allowed)) return;
  return `${room} may import only ${[room, ...imports].join(", ")}. Pass it in, move the code, or add it to "imports" of ${room} in house-rules.json if the direction is right`;
}

/** Returns the reason against importing package or built-in module `name`, or `undefined`. */
function packageFault(room, name) {
  const owner = Object.entries(house.onlyImporters).find(([pattern]) => matches(name, pattern));
  if (owner !== undefined) {
    const rooms = [owner[1]].flat();
    if (!rooms.includes(room))
      return `only ${rooms.join(" and ")} may import ${owner[0]}. Use it through src/${rooms[0]}`;
  }
  const { packages, pure = false, builtins = [] } = house.folders[room];
  if (isBuiltin(name)) {
    if (!pure || builtins.some((allowed) => matches(name, allowed))) return;
    const may = builtins.length > 0 ? `of Node's modules only ${builtins.join(", ")}` : "no module of Node";
    return `${room} is pure: ${may}. Pass in what it does, as a parameter or a port`;
  }
  if (packages.some((allowed) => matches(name, allowed))) return;
  const may = packages.length > 0 ? packages.join(", ") : "none";
  return `${room} may import only these packages: ${may}. Move the code to a folder that may, or add it to "packages" of ${room} in house-rules.json`;
}

function checkFile(file, files) {
  const room = roomOf(file);
  const edges = [];
  if (house.folders[room] === undefined) {
    violations.push(
      `src/${file}: ${room} has no row in house-rules.json. Add one to "folders" (what it decides, what it may import), or move the file`,
    );
    return { edges, count: 0, lines: 0 };
  }
  const text = readFileSync(join(root, "src", file), "utf8");
  const imports = importsOf(text);
  for (const { isType, line, specifier } of imports) {
    const at = `src/${file}:${line} imports`;
    if (specifier === null) {
      violations.push(`${at} a module that cannot be read here: name it in one string`);
      continue;
    }
    const relative = specifier.startsWith(".");
    const direct = posix.join(posix.dirname(file), specifier);
    const target = files.has(direct) ? direct : direct.replace(/\.js$/, ".ts");
    const builtin = isBuiltin(specifier) && !specifier.startsWith("node:") ? `node:${specifier}` : specifier;
    const fault = relative ? fileFault(room, target, files, isType) : packageFault(room, builtin);
    if (fault !== undefined) violations.push(`${at} ${specifier}: ${fault}`);
    if (relative && files.has(target)) edges.push({ target, line });
  }
  return { edges, count: imports.length, lines: text.split("\n").length - 1 };
}

/** Reports each import that closes a cycle: an edge to a file still open on the depth-first path. */
function checkCycles(graph) {
  const path = [];
  const done = new Set();
  const visit = (file) => {
    path.push(file);
    for (const { target, line } of graph.get(file) ?? []) {
      const start = path.indexOf(target);
      if (start >= 0) {
        const cycle = [...path.slice(start), target].join(" -> ");
        violations.push(
          `src/${file}:${line} imports ${target}: a cycle, ${cycle}. Move what both need into a file of its own`,
        );
      } else if (!done.has(target)) visit(target);
    }
    path.pop();
    done.add(file);
  };
  for (const file of graph.keys()) if (!done.has(file)) visit(file);
}

/** Reports small files except `house.smallFiles` (a tool, an entry or a schema). Only `house.finished` folders count. */
function checkSmallFiles(graph, lines) {
  const { finished = [], maxSmallLines, smallFiles = [] } = house;
  const importers = new Map([...graph.keys()].map((file) => [file, new Set()]));
  for (const [file, edges] of graph) for (const { target } of edges) importers.get(target)?.add(file);
  for (const [file, by] of importers) {
    const isSmall = by.size === 1 && lines.get(file) < maxSmallLines && finished.includes(roomOf(file));
    const isListed = smallFiles.includes(file);
    const [only] = by;
    if (isSmall && !isListed) {
      violations.push(
        `src/${file} has ${lines.get(file)} lines and one importer: merge it into src/${only}, or list it in "smallFiles" of house-rules.json if it is a command, an approver, a tool or a schema`,
      );
    }
    if (!isSmall && isListed)
      violations.push(
        `src/${file} is not small or has other importers: take it out of "smallFiles" of house-rules.json`,
      );
  }
}

/** Reports a name that occurs twice below a folder of src, so that a name finds one file there. */
function checkBaseNames(files) {
  const { finished = [] } = house;
  const known = new Map();
  for (const file of files.filter((name) => finished.includes(roomOf(name)))) {
    const name = `${roomOf(file)} ${posix.basename(file)}`;
    const other = known.get(name);
    if (other !== undefined)
      violations.push(
        `src/${file} has the name of src/${other}: rename the newer one for what it decides in its folder`,
      );
    known.set(name, file);
  }
}

const all = existsSync(join(root, "src")) ? walk() : [];
const files = new Set(all);
const graph = new Map();
const lines = new Map();
let count = 0;
for (const file of all.filter((name) => CODE.test(name))) {
  const result = checkFile(file, files);
  graph.set(file, result.edges);
  lines.set(file, result.lines);
  count += result.count;
}
checkCycles(graph);
checkSmallFiles(graph, lines);
checkBaseNames([...graph.keys()]);
if (graph.size === 0)
  violations.push("no source file was read below src: nothing was checked. Name the folder that has src");

if (violations.length > 0) {
  console.error(violations.join("\n"));
  process.exitCode = 1;
} else console.log(`house: ${graph.size} files, ${count} imports, no violation`);
