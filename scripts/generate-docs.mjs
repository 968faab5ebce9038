// Writes the generated parts of the docs, each between its two markers; everything around them is kept.
// Usage: node scripts/generate-docs.mjs [--check], after a build. With --check nothing is written: a stale file is
// named, with the command that mends it, and the exit code is 1; as it is when a parameter is shown by no test.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { format, resolveConfig } from "prettier";
import { z } from "zod";
import { shownByTests } from "./shown-by.mjs";

/** Every parameter of every tool must be shown by a test in test/server: see scripts/shown-by.mjs. */
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

/** Each part: the file it stands in, the name in its markers, and the Markdown that belongs there. */
const PARTS = [
  { file: "docs/configuration.md", name: "settings", render: settingsTable },
  ...Object.entries(TOOLS).flatMap(([file, tools]) =>
    tools.map((tool) => ({ file, name: `tool ${tool}`, render: () => parameterTable(tool) })),
  ),
  { file: "docs/tools.md", name: "advanced options", render: advancedTable },
  { file: "docs/tools.md", name: "error codes", render: errorTable },
];

const MEND = "npm run build && node scripts/generate-docs.mjs";
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

async function settingsTable() {
  const { code, table } = await built("tools/reference/table.js");
  const { SETTINGS } = await built("config/schema.js");
  const rows = SETTINGS.map(({ flag, placeholder, variable, key, inFile, allowed, fallback, meaning, reading }) => [
    code(reading === "boolean" ? `--${flag}` : `--${flag} ${placeholder}`),
    code(variable),
    inFile ? code(key) : "",
    fallback,
    `${meaning} Allowed: ${allowed}.`,
  ]);
  return table(["Flag", "Variable", "Key in the file", "Default", "Meaning"], rows);
}

async function parameterTable(name) {
  const { toolsOf } = await built("tools/toolsets.js");
  const { querySettings } = await built("config/query.js");
  const { Config } = await built("config/schema.js");
  const tool = toolsOf(["all"], { query: querySettings(Config.parse({})) }).find((each) => each.name === name);
  return schemaTable(name, tool.inputSchema({ maxWaitMs: 45_000 }));
}

async function advancedTable() {
  const { AdvancedOptions } = await built("domain/options.js");
  return schemaTable("claude_code", z.toJSONSchema(AdvancedOptions, { io: "input" }));
}

async function errorTable() {
  const { code, table } = await built("tools/reference/table.js");
  const { ERRORS } = await built("tools/resources/errors.js");
  const rows = Object.entries(ERRORS).map(([name, { when, todo }]) => [code(name), when, todo]);
  return table(["Code", "When", "What to do"], rows);
}

const shown = shownByTests(root, Object.values(TOOLS).flat());
const unshown = [];

/** What may stand for each name of an object, what it means, and which tests show that it does. */
async function schemaTable(tool, schema) {
  const { code, rowsOf, table, wordsOf } = await built("tools/reference/table.js");
  const rows = rowsOf(schema).map((row) => {
    const files = [...(shown.get(tool).get(row.name) ?? [])];
    if (files.length === 0) unshown.push(`${tool}: ${row.name}`);
    return [code(row.name), row.type, wordsOf(row), files.map((file) => file.replace(".test.ts", "")).join(", ")];
  });
  return table(["Name", "Type", "Meaning", "Shown by"], rows);
}

async function built(module) {
  const path = join(root, "dist", module);
  if (!existsSync(path)) throw new Error(`dist/${module} is not there: run npm run build first`);
  return import(pathToFileURL(path).href);
}

/** The text with the part put in, laid out by prettier as the format check wants it. */
async function withPart({ file, name, render }, text) {
  const [before, after] = [`<!-- generated: ${name} -->`, `<!-- end of ${name} -->`];
  const start = text.indexOf(before);
  const end = text.indexOf(after);
  if (start < 0 || end < start) throw new Error(`${file} lacks the markers ${before} and ${after}`);
  const whole = `${text.slice(0, start)}${before}\n\n${await render()}\n\n${text.slice(end)}`;
  const path = join(root, file);
  return format(whole, { ...(await resolveConfig(path)), filepath: path });
}

const check = process.argv.includes("--check");
const files = new Map();
for (const part of PARTS) {
  const text = files.get(part.file) ?? readFileSync(join(root, part.file), "utf8");
  files.set(part.file, await withPart(part, text));
}
const stale = [...files].filter(([file, text]) => text !== readFileSync(join(root, file), "utf8"));
if (!check) for (const [file, text] of stale) writeFileSync(join(root, file), text);
if (unshown.length > 0) {
  console.error(
    `No test in test/server shows ${unshown.join(", ")}: name it in the title of one that does, in backticks`,
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
