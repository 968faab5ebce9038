// Writes the generated parts of the docs between their markers, and keeps all other text. Exits with 1 if no test shows a
// parameter.
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import { readArguments } from "./arguments.mjs";
import { fromSource } from "./from-source.mjs";
import { shownByTests } from "./shown-by.mjs";

const USAGE = `Usage: node scripts/generate-docs.mjs [--check]

--check  write nothing, and fail if a file is stale`;

const { check = false } = readArguments(USAGE, { options: { check: { type: "boolean" } } }).values;

/**
 * Tools per file. A test in test/acceptance, test/server or test/claude must show every parameter of every tool: see
 * scripts/shown-by.mjs.
 */
const TOOLS = {
  "docs/tools.md": ["claude_code", "claude_code_reply", "claude_code_check", "claude_code_session"],
  "docs/toolsets.md": [
    "claude_code_query",
    "claude_session_create",
    "claude_session_close",
    "claude_chat_query",
    "claude_chat_interrupt",
    "claude_chat_model",
    "claude_chat_mode",
    "claude_direct_query",
    "claude_code_configure",
  ],
};

/** Generated parts: file, name in the markers, and Markdown. */
const PARTS = [
  ...["term", "server", "client"].map((of) => ({
    file: "docs/configuration.md",
    name: `settings ${of}`,
    render: () => settingsTable(of),
  })),
  { file: "docs/toolsets.md", name: "keys of query", render: queryTable },
  { file: "docs/approvals.md", name: "approvers", render: approverTable },
  ...Object.entries(TOOLS).flatMap(([file, tools]) =>
    tools.map((tool) => ({ file, name: `tool ${tool}`, render: () => parameterTable(tool) })),
  ),
  { file: "docs/tools.md", name: "advanced options", render: advancedTable },
  { file: "docs/tools.md", name: "options shown", render: shownTable },
  { file: "docs/tools.md", name: "error codes", render: errorTable },
  { file: "docs/security.md", name: "restricted options", render: restrictedTable },
  { file: "docs/conformance.md", name: "what passes", render: conformanceTable },
  { file: "docs/conformance.md", name: "what is not ours", render: notOursTable },
  { file: "docs/observability.md", name: "metrics", render: metricsTable },
  { file: "docs/architecture.md", name: "folders", render: foldersTable },
  { file: "docs/clients.md", name: "files of clients", render: clientsTable },
  { file: "README.md", name: "install links", render: installLinks },
];

const MEND = "node scripts/generate-docs.mjs";
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Modules that the docs describe. */
const MODULES = [
  "approvers/approvers",
  "config/query",
  "config/schema",
  "domain/names",
  "install/clients",
  "install/invocation",
  "mcp/resources/options-reference",
  "mcp/resources/errors-page",
  "tools/prompt",
  "tools/toolsets",
];
const source = await fromSource(
  [...MODULES, "domain/options", "domain/options/traits", "http/metrics/instruments"].map((module) => `src/${module}`),
);
const {
  APPROVERS,
  AdvancedOptions,
  CLIENTS,
  Config,
  ERRORS,
  PromptOptions,
  PRODUCT,
  PUBLISHED,
  QUERY_KEYS,
  QUERY_VARIABLES,
  Registry,
  SETTINGS,
  TRAITS,
  code,
  instruments,
  rowsOf,
  toolsOf,
  wordsOf,
  z,
} = source;
const { NOT_OURS, REVISIONS, scenariosOf } = await fromSource(["test/conformance/listed"]);

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [head, head.map(() => "---"), ...rows].map(line).join("\n");
}

function settingsTable(of) {
  const rows = SETTINGS.filter((each) => each.of === of).map(
    ({ flag, placeholder, variable, key, inFile, allowed, fallback, meaning, reading }) => [
      code(reading === "boolean" ? `--${flag}` : `--${flag} ${placeholder}`),
      code(variable),
      inFile ? code(key) : "",
      fallback,
      `${meaning} Allowed: ${allowed}.`,
    ],
  );
  return table(["Flag", "Variable", "Key in the file", "Default", "Meaning"], rows);
}

/** Renders the keys of the setting `query`, with the variables of `QUERY_VARIABLES`. */
function queryTable() {
  const rows = QUERY_KEYS.map(({ allowed, fallback, key, meaning, variable }) => [
    code(key.slice("query.".length)),
    QUERY_VARIABLES.some((each) => each.key === key) ? code(variable) : "",
    fallback,
    `${meaning} Allowed: ${allowed}.`,
  ]);
  return table(["Key", "Variable", "Default", "Meaning"], rows);
}

function approverTable() {
  const rules = ["rules", "set by the operator beforehand", "none: no approver is asked"];
  const rows = APPROVERS.map(({ docs, name }) => [code(name), docs.is, docs.time]);
  return table(["Approver", "Description", "Time limit"], [rules, ...rows]);
}

function parameterTable(name) {
  const tool = toolsOf(["all"], { query: Config.parse({}).query, gate: () => ({}) }).find((each) => each.name === name);
  return schemaTable(name, tool.inputSchema({ maxWaitMs: 45_000, allowsDiskResume: true }, true));
}

function advancedTable() {
  return schemaTable("claude_code", z.toJSONSchema(AdvancedOptions.extend(PromptOptions.shape), { io: "input" }));
}

/** Wording of how an option is displayed, in the order of the rows. */
const SHOWN = {
  public: "in both tiers",
  sensitive: "in the sensitive tier",
  "by value": "in the sensitive tier, in part (see below)",
  "by name": "in `leftOut`, by its name alone",
  never: "never",
};

function shownTable() {
  const shownAs = (how) => Object.entries(TRAITS).flatMap(([name, { shown }]) => (shown === how ? [code(name)] : []));
  const rows = Object.entries(SHOWN).map(([how, words]) => [words, shownAs(how).join(", ")]);
  return table(["Shown", "Options"], rows);
}

function restrictedTable() {
  const restricted = Object.entries(TRAITS).filter(
    ([, { access, sandbox }]) => access !== "any caller" || sandbox !== "allowed",
  );
  const inPart = "in part, see below";
  const rows = restricted.map(([name, { access, sandbox }]) => [
    code(name),
    access === "by value" ? inPart : (access.operatorOnly ?? ""),
    sandbox === "by value" ? inPart : (sandbox.refused ?? ""),
  ]);
  return table(["Option", "Why only the operator may set it", "Why `--sandbox required` refuses it"], rows);
}

function errorTable() {
  const rows = Object.entries(ERRORS).map(([name, { when, todo }]) => [code(name), when, todo]);
  return table(["Code", "When", "What to do"], rows);
}

/** Renders the paths of each client, one path if the systems differ only in spelling. */
function clientsTable() {
  const env = { APPDATA: "%APPDATA%", LOCALAPPDATA: "%LOCALAPPDATA%" };
  const systems = { Linux: "linux", macOS: "darwin", Windows: "win32" };
  const places = { home: "~", project: ".", exists: () => false };
  const cell = (fileOf) => {
    const paths = Object.values(systems).map((platform) => fileOf({ ...places, platform, env }).replaceAll("\\", "/"));
    if (new Set(paths).size === 1) return code(paths[0]);
    return Object.keys(systems)
      .map((name, at) => `${name} ${code(paths[at])}`)
      .join(", ");
  };
  const rows = CLIENTS.map(({ files, id, title }) => {
    const section = `[${title}](#${title.toLowerCase().replaceAll(" ", "-")})`;
    return [section, code(id), cell(files.user), files.project === undefined ? "none" : cell(files.project)];
  });
  return table(["Client", "Name", "`--scope user`", "`--scope project`"], rows);
}

function installLinks() {
  const links = CLIENTS.filter(({ link }) => link).map(
    ({ entry, link, title }) => `[${title}](${link(entry(PUBLISHED), PRODUCT)})`,
  );
  return `Install links: ${links.join(", ")}.`;
}

/** Subjects of the suite, in the order of the columns. */
const SUBJECTS = { fixtures: "fixtures behind our HTTP layer", server: "built server" };

/** The conformance tests verify these numbers: exactly the listed scenarios fail. */
function conformanceTable() {
  const passed = (on, revision, scenarios) => {
    const entries = NOT_OURS.filter((each) => each.on === on && each.revision === revision);
    return String(scenarios.length - entries.flatMap((each) => each.scenarios).length);
  };
  const rows = REVISIONS.map((revision) => {
    const scenarios = scenariosOf(revision);
    const columns = Object.keys(SUBJECTS).map((on) => passed(on, revision, scenarios));
    return [revision, String(scenarios.length), ...columns];
  });
  return table(["Revision", "Scenarios", ...Object.values(SUBJECTS).map((name) => `Passed by the ${name}`)], rows);
}

function notOursTable() {
  const list = (names) => names.map((name) => code(name)).join(", ");
  const rows = NOT_OURS.map(({ on, revision, scenarios, checks = [], reason }) => {
    const which = checks.length > 0 ? `${list(scenarios)}: only ${list(checks)}` : list(scenarios);
    return [`${on}, ${revision}`, which, reason];
  });
  return table(["On", "Scenarios", "Why"], rows);
}

function metricsTable() {
  const rows = Object.values(instruments(new Registry())).map(({ constructor, help, labelNames, name }) => {
    return [code(name), constructor.name.toLowerCase(), labelNames.map(code).join(", "), help];
  });
  return table(["Metric", "Type", "Labels", "Meaning"], rows);
}

/** Renders the import rules that scripts/check-house.mjs enforces. */
function foldersTable() {
  const { folders } = JSON.parse(readFileSync(join(root, "house-rules.json"), "utf8"));
  const rows = Object.entries(folders).map(([name, { decides, imports, packages }]) => [
    code(name.endsWith(".ts") ? name : `${name}/`),
    decides,
    imports.map((each) => each.replace(/\.ts$/, "")).join(", "),
    packages.map((each) => each.replace(/\*$/, "")).join(", "),
  ]);
  return table(["Folder", "Decides", "May import", "Packages"], rows);
}

const shown = shownByTests(root, Object.values(TOOLS).flat());
const unshown = [];

/** Renders type and meaning of each field of an object, and the tests that show the field. */
function schemaTable(tool, schema) {
  const rows = rowsOf(schema).map((row) => {
    const files = [...(shown.get(tool).get(row.name) ?? [])];
    if (files.length === 0) unshown.push(`${tool}: ${row.name}`);
    return [code(row.name), row.type, wordsOf(row), files.map((file) => basename(file, ".test.ts")).join(", ")];
  });
  return table(["Name", "Type", "Meaning", "Shown by"], rows);
}

/** Returns `text` with the part inserted. */
function withPart({ file, name, render }, text) {
  const [before, after] = [`<!-- generated: ${name} -->`, `<!-- end of ${name} -->`];
  const start = text.indexOf(before);
  const end = text.indexOf(after);
  if (start < 0 || end < start) throw new Error(`${file} lacks the markers ${before} and ${after}`);
  return `${text.slice(0, start)}${before}\n\n${render()}\n\n${text.slice(end)}`;
}

/** Formats `text` like the format check requires. */
async function formatted(file, text) {
  const path = join(root, file);
  return format(text, { ...(await resolveConfig(path)), filepath: path });
}

const files = new Map();
for (const part of PARTS) {
  const text = files.get(part.file) ?? readFileSync(join(root, part.file), "utf8");
  files.set(part.file, withPart(part, text));
}
for (const [file, text] of files) files.set(file, await formatted(file, text));
const stale = [...files].filter(([file, text]) => text !== readFileSync(join(root, file), "utf8"));
if (!check) for (const [file, text] of stale) writeFileSync(join(root, file), text);
if (unshown.length > 0) {
  console.error(
    `No test in test/acceptance, test/server or test/claude shows ${unshown.join(", ")}: name it in the title of one that does, in backticks`,
  );
  process.exitCode = 1;
}
if (check && stale.length > 0) {
  for (const [file] of stale) console.error(`${file} is stale: run ${MEND}`);
  process.exitCode = 1;
}
if (process.exitCode === undefined) {
  console.log(`docs: ${files.size} files with generated parts, ${check ? "none stale" : `${stale.length} written`}`);
}
