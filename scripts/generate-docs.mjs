// Writes the generated parts of the docs, each between its two markers; everything around them is kept.
// Usage: node scripts/generate-docs.mjs [--check], after a build. With --check nothing is written: a stale file is
// named, with the command that mends it, and the exit code is 1.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { format, resolveConfig } from "prettier";
import { z } from "zod";

/** Each part: the file it stands in, the name in its markers, and the Markdown that belongs there. */
const PARTS = [
  { file: "docs/configuration.md", name: "settings", render: settingsTable },
  ...["claude_code", "claude_code_reply", "claude_code_check", "claude_code_session"].map((tool) => ({
    file: "docs/tools.md",
    name: `tool ${tool}`,
    render: () => parameterTable(tool),
  })),
  { file: "docs/tools.md", name: "advanced options", render: advancedTable },
  { file: "docs/tools.md", name: "error codes", render: errorTable },
];

const MEND = "npm run build && node scripts/generate-docs.mjs";
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

async function settingsTable() {
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
  const tool = toolsOf(["agent"]).find((each) => each.name === name);
  return schemaTable(tool.inputSchema({ maxWaitMs: 45_000 }));
}

async function advancedTable() {
  const { AdvancedOptions } = await built("domain/options.js");
  return schemaTable(z.toJSONSchema(AdvancedOptions, { io: "input" }));
}

async function errorTable() {
  const { ERRORS } = await built("tools/resources/errors.js");
  const rows = Object.entries(ERRORS).map(([name, { when, todo }]) => [code(name), when, todo]);
  return table(["Code", "When", "What to do"], rows);
}

/** What may stand for each name of an object, and what it means. */
function schemaTable({ properties, required = [] }) {
  const rows = Object.entries(properties).map(([name, schema]) => [
    code(name),
    allowedBy(schema),
    [required.includes(name) ? "Required." : "", sentence(schema.description ?? "")].filter(Boolean).join(" "),
  ]);
  return table(["Name", "Type", "Meaning"], rows);
}

function allowedBy(schema) {
  if (schema.enum) return schema.enum.map(code).join(", ");
  if (schema.const !== undefined) return code(schema.const);
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return [...new Set(forms.map(allowedBy))].join(" or ");
  if (schema.type === "array") return `array of ${schema.items ? allowedBy(schema.items) : "object"}`;
  if (schema.type === "integer") return range("integer", schema);
  return schema.type;
}

function range(type, { minimum, maximum }) {
  if (maximum === undefined) return minimum === undefined ? type : `${type}, at least ${minimum}`;
  return `${type}, ${minimum} to ${maximum}`;
}

function sentence(text) {
  if (text === "") return "";
  const begun = text.startsWith("ms ") ? text : `${text[0].toUpperCase()}${text.slice(1)}`;
  return begun.endsWith(".") ? begun : `${begun}.`;
}

async function built(module) {
  const path = join(root, "dist", module);
  if (!existsSync(path)) throw new Error(`dist/${module} is not there: run npm run build first`);
  return import(pathToFileURL(path).href);
}

const code = (text) => `\`${text}\``;

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [head, head.map(() => "---"), ...rows].map(line).join("\n");
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
if (check && stale.length > 0) {
  for (const [file] of stale) console.error(`${file} is stale: run ${MEND}`);
  process.exitCode = 1;
} else {
  console.log(`docs: ${files.size} files with generated parts, ${check ? "none stale" : `${stale.length} written`}`);
}
