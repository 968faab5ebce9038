import { getStaticTOMLValue, ParseError, parseTOML, type AST } from "toml-eslint-parser";
import { JsonObject } from "../domain/json.ts";
import { PRINTED, syntaxFault, UnusableFile, type Entry, type Format, type Path } from "./format.ts";

/** TOML with the entry as a separate table, `[mcp_servers.NAME]`, as written by Codex. Only lines of that table change. */
export const TOML_FORMAT: Format = { parse, set, remove };

function parse(text: string): JsonObject {
  return JsonObject.parse(getStaticTOMLValue(read(text)));
}

function set(text: string, path: Path, entry: Entry): string {
  const tables = tablesOf(text, path);
  const table = tables.find(({ resolvedKey }) => resolvedKey.length === path.length);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  if (table === undefined) return append(text, path, entry, eol);
  return Object.entries(entry).reduce((changed, [key, value]) => setValue(changed, { path, key, value, eol }), text);
}

function append(text: string, path: Path, entry: Entry, eol: string): string {
  const lines = [`[${path.map(keyText).join(".")}]`, ...Object.entries(entry).map(([key, value]) => line(key, value))];
  const ended = text === "" || text.endsWith("\n") ? text : text + eol;
  const gap = ended === "" || /\n\r?\n$/.test(ended) ? "" : eol;
  return `${ended}${gap}${lines.join(eol)}${eol}`;
}

interface KeyChange {
  readonly path: Path;
  readonly key: string;
  readonly value: Entry[string];
  readonly eol: string;
}

function setValue(text: string, { eol, key, path, value }: KeyChange): string {
  const table = tablesOf(text, path).find(({ resolvedKey }) => resolvedKey.length === path.length);
  if (table === undefined) throw new Error("the table is gone");
  const present = table.body.find((each) => keysOf(each)[0] === key);
  if (present === undefined) {
    const end = lineEnd(text, table.range[1]);
    return `${text.slice(0, end)}${eol}${line(key, value)}${text.slice(end)}`;
  }
  if (keysOf(present).length > 1) throw unusualSyntax(present, `${key} is written with dots`);
  if (JSON.stringify(getStaticTOMLValue(present.value)) === JSON.stringify(value)) return text;
  const [start, end] = present.value.range;
  return text.slice(0, start) + valueText(value) + text.slice(end);
}

/** Removes the entry with all tables below, and the empty line before each. */
function remove(text: string, path: Path): string {
  return tablesOf(text, path).reduceRight((left, { range }) => {
    const start = left.lastIndexOf("\n", range[0]) + 1;
    const end = lineEnd(left, range[1]);
    const before = left.slice(0, start);
    const after = left.slice(end).replace(/^\r?\n/, "");
    const atGap = after === "" || /^\r?\n/.test(after);
    return (atGap ? before.replace(/(?<=\n)\r?\n$/, "") : before) + after;
  }, text);
}

/** Returns the entry's table and all below, in order. Throws UnusableFile for any other syntax. */
function tablesOf(text: string, path: Path): AST.TOMLTable[] {
  const tables: AST.TOMLTable[] = [];
  for (const node of read(text).body[0].body) {
    if (node.type === "TOMLTable" && node.kind === "standard" && startsWith(node.resolvedKey, path)) {
      tables.push(node);
      continue;
    }
    const [head, lines] = node.type === "TOMLTable" ? [node.resolvedKey, node.body] : [[], [node]];
    // Skips indexes: a table's index in a list follows the name of the list.
    const names = head.filter((part) => typeof part === "string");
    const isList = node.type === "TOMLTable" && node.kind === "array";
    if (isList && (startsWith(names, path) || startsWith(path, names))) {
      throw unusualSyntax(node, `${names.join(".")} is a list of tables`);
    }
    for (const each of lines) {
      const key = [...head, ...keysOf(each)];
      if (startsWith(key, path)) throw unusualSyntax(each, `${path.join(".")} is not a separate table`);
      if (startsWith(path, key)) throw unusualSyntax(each, `${key.join(".")} is not a separate table`);
    }
  }
  return tables;
}

function unusualSyntax({ loc }: AST.TOMLNode, how: string): UnusableFile {
  return new UnusableFile(
    `cannot be edited here: ${how} (line ${String(loc.start.line)}). Edit it by hand: ${PRINTED}.`,
  );
}

const startsWith = (key: readonly unknown[], start: readonly unknown[]): boolean =>
  start.length > 0 && start.every((part, at) => part === key[at]);

const keysOf = ({ key }: AST.TOMLKeyValue): string[] =>
  key.keys.map((each) => (each.type === "TOMLBare" ? each.name : each.value));

/** Parses TOML. Throws UnusableFile. */
function read(text: string): AST.TOMLProgram {
  try {
    return parseTOML(text, { tomlVersion: "1.1" });
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    // Messages of the parser may quote the line.
    const [problem = ""] = error.message.split(/[:"'`]/);
    throw syntaxFault("TOML", problem.trim(), { line: error.lineNumber, column: error.column + 1 });
  }
}

/** Returns the end of the line with `offset`, before its line break. */
function lineEnd(text: string, offset: number): number {
  const end = /\r?\n|$/.exec(text.slice(offset));
  return offset + (end?.index ?? 0);
}

const keyText = (key: string): string => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key));

const line = (key: string, value: Entry[string]): string => `${keyText(key)} = ${valueText(value)}`;

function valueText(value: Entry[string]): string {
  if (typeof value === "string") return JSON.stringify(value).replaceAll("\u007f", String.raw`\u007f`);
  return typeof value === "object" ? `[${value.map((each) => valueText(each)).join(", ")}]` : String(value);
}
