/**
 * Refuses the words of scripts/prose.yml in documents, in comments and in texts of the code: textlint with the rule prh.
 * Prints one line per finding and exits 1.
 */
import { existsSync, readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { TextlintKernel } from "@textlint/kernel";
import markdown from "@textlint/textlint-plugin-markdown";
import { parseSync, Visitor } from "rolldown/utils";
import prh from "textlint-rule-prh";
import { readArguments } from "./arguments.mjs";

const USAGE = `Usage: node scripts/check-prose.mjs [FILE ...]

Without a FILE all files that Git knows or would add are checked.`;

const DOCUMENT = /\.md$/;
const CODE = /\.(?:[cm]?ts|tsx|mjs)$/;
/** Written by programs, or quotes of others. */
const LEFT_OUT = /^(?:test\/toolsnaps\/|test\/mutations\.md|CODE_OF_CONDUCT\.md)/;

const kernel = new TextlintKernel();
const rulePaths = [fileURLToPath(new URL("prose.yml", import.meta.url))];

/** `text` is read as Markdown, so that words in backticks are left out. Resolves with { line, message } per finding. */
async function findingsOf(text) {
  const { messages } = await kernel.lintText(text, {
    ext: ".md",
    plugins: [{ pluginId: "markdown", plugin: markdown.default ?? markdown }],
    rules: [{ ruleId: "prh", rule: prh.default ?? prh, options: { rulePaths, checkLink: false } }],
  });
  return messages.map(({ loc, message }) => ({ line: loc.start.line, message: message.split("\n")[0] }));
}

/** Comments, and literals that are more than a word, as { line, text }. */
function textsOf(code, file) {
  const { comments, program } = parseSync(file, code);
  const found = comments.map(({ start, value }) => ({ start, text: value.replace(/^[ \t]*\*+ ?/gm, "").trimStart() }));
  const note = (start, text) => {
    if (/\s/.test(text.trim())) found.push({ start, text: text.trim() });
  };
  new Visitor({
    Literal: ({ start, value }) => typeof value === "string" && note(start, value),
    TemplateElement: ({ start, value }) => note(start, value.cooked ?? ""),
    JSXText: ({ start, value }) => note(start, value),
  }).visit(program);
  return found.map(({ start, text }) => ({ text, line: code.slice(0, start).split("\n").length }));
}

/** All texts of a file in one document, since each document takes a parser of its own. */
async function checkCode(file) {
  const lines = [];
  const standsIn = [];
  for (const { line, text } of textsOf(readFileSync(file, "utf8"), file)) {
    // As Markdown, a fence or a tag in one text would hide the texts after it.
    const own = text.split("\n").map((each) => each.trim().replace(/^(?:`{3,}|~{3,}|<)/, ""));
    lines.push(...own, "");
    standsIn.push(...own.map((_, index) => line + index), 0);
  }
  const found = await findingsOf(lines.join("\n"));
  return found.map(({ line, message }) => `${file}:${String(standsIn[line - 1])} ${message}`);
}

async function checkDocument(file) {
  const found = await findingsOf(readFileSync(file, "utf8"));
  return found.map(({ line, message }) => `${file}:${String(line)} ${message}`);
}

const { positionals: named, refuse } = readArguments(USAGE, { allowPositionals: true });
const missing = named.find((file) => !existsSync(file));
if (missing !== undefined) refuse(`There is no file "${missing}".`);
// With new files, so that they are checked before they are committed.
const listing = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { encoding: "utf8" });
const files =
  named.length > 0 ? named : listing.stdout.split("\n").filter((file) => existsSync(file) && !LEFT_OUT.test(file));
const code = files.filter((file) => CODE.test(file));
const documents = files.filter((file) => DOCUMENT.test(file));
const findings = (await Promise.all([...code.map(checkCode), ...documents.map(checkDocument)])).flat();
for (const each of findings) console.log(each);
process.exit(findings.length === 0 ? 0 : 1);
