import { parseTree, printParseErrorCode, getNodeValue, type Node, type ParseError } from "jsonc-parser";
import { JsonObject } from "../domain/json.ts";
import { positionOf, syntaxFault, UnusableFile, type Entry, type Format, type Path } from "./format.ts";

/**
 * JSON with comments and trailing commas, as in editors. Does not use `modify` of jsonc-parser, which reformats nearby lines;
 * here a change is one insertion, and a comma before it.
 */
export const JSON_FORMAT: Format = { parse, set, remove };

function parse(text: string, [table, name]: Path): JsonObject {
  const root = read(text);
  if (root === undefined) return {};
  const servers = findValue(text, root, table);
  if (servers?.type === "object") findValue(text, servers, name);
  return JsonObject.parse(getNodeValue(root));
}

function set(text: string, path: Path, entry: Entry): string {
  const [table, name] = path;
  const root = read(text);
  const { eol, unit } = styleOf(text, root);
  const style = { eol, unit, text };
  if (root === undefined) {
    const start = text === "" || text.endsWith("\n") ? text : text + eol;
    return `${start}{${eol}${unit}${property(table, { [name]: entry }, { ...style, indent: unit })}${eol}}${eol}`;
  }
  const servers = findValue(text, root, table);
  if (servers === undefined) return insert(root, table, { [name]: entry }, style);
  const present = findValue(text, requireObject(text, servers, table), name);
  if (present === undefined) return insert(servers, name, entry, style);
  const value: unknown = getNodeValue(present);
  // An entry with an address instead of a command has nothing to keep.
  if (present.type !== "object" || !Object.hasOwn(JsonObject.parse(value), "command")) {
    return replace(text, present, render(entry, { ...style, indent: indentAt(text, present.offset) }));
  }
  return Object.entries(entry).reduce((changed, [key, each]) => setValue(changed, path, key, each), text);
}

function setValue(text: string, [table, name]: Path, key: string, value: Entry[string]): string {
  const root = read(text);
  const entry = root && valueAt(text, root, [table, name]);
  if (root === undefined || entry === undefined) throw new Error("the entry is gone");
  const present = findValue(text, entry, key);
  const style = { ...styleOf(text, root), text };
  if (present === undefined) return insert(entry, key, value, style);
  if (JSON.stringify(getNodeValue(present)) === JSON.stringify(value)) return text;
  return replace(text, present, render(value, { ...style, indent: "" }));
}

function remove(text: string, path: Path, what: "entry" | "empty table"): string {
  const root = read(text);
  const entry = root && valueAt(text, root, path);
  if (entry?.parent === undefined) return text;
  const left = removeProperty(text, entry.parent);
  const rest = read(left);
  const servers = rest && findValue(left, rest, path[0]);
  if (what === "entry" || servers?.parent === undefined || (servers.children ?? []).length > 0) return left;
  return removeProperty(left, servers.parent);
}

/** Returns the root object; `undefined` if the file has no value. Throws UnusableFile. */
function read(text: string): Node | undefined {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  const [error] = errors;
  if (error) throw syntaxFault("JSON", printParseErrorCode(error.error), positionOf(text, error.offset));
  return root && requireObject(text, root, "the file");
}

function requireObject(text: string, node: Node, what: string): Node {
  if (node.type === "object") return node;
  const { column, line } = positionOf(text, node.offset);
  throw new UnusableFile(
    `has no object where ${what} is expected (line ${String(line)}, column ${String(column)}). Repair it first.`,
  );
}

/** Returns the value of a property. Throws for a duplicate name, because clients disagree which one counts. */
function findValue(text: string, object: Node, name: string): Node | undefined {
  const found = (object.children ?? []).filter(({ children }) => children?.[0]?.value === name);
  if (found.length > 1) {
    const { line } = positionOf(text, found[1]?.offset ?? 0);
    throw new UnusableFile(`has "${name}" twice (line ${String(line)}). Remove one of them first.`);
  }
  return found[0]?.children?.[1];
}

function valueAt(text: string, root: Node, [table, name]: Path): Node | undefined {
  const servers = findValue(text, root, table);
  return servers && findValue(text, requireObject(text, servers, table), name);
}

interface Style {
  readonly text: string;
  readonly eol: string;
  /** A level of indentation. */
  readonly unit: string;
}

function styleOf(text: string, root: Node | undefined): { eol: string; unit: string } {
  const first = root?.children?.[0];
  const unit = first === undefined ? "" : indentAt(text, first.offset);
  const startsLine = first !== undefined && /^[ \t]+$/.test(text.slice(lineStart(text, first.offset), first.offset));
  return { eol: text.includes("\r\n") ? "\r\n" : "\n", unit: startsLine ? unit : "  " };
}

const lineStart = (text: string, offset: number): number => text.lastIndexOf("\n", offset - 1) + 1;

/** Returns the white space at the start of the line with `offset`. */
function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(lineStart(text, offset), offset))?.[0] ?? "";
}

function insert(object: Node, name: string, value: unknown, style: Style): string {
  const { eol, text, unit } = style;
  const last = object.children?.at(-1);
  const [open, close] = [object.offset, object.offset + object.length - 1];
  const isOneLine = !text.slice(open, close).includes("\n");
  if (last === undefined) {
    const indent = indentAt(text, open) + unit;
    const end = isOneLine ? eol + indentAt(text, open) : "";
    return splice(text, open + 1, 0, eol + indent + property(name, value, { ...style, indent }) + end);
  }
  const { comma, lineEnd } = findTail(text, last.offset + last.length, close);
  if (isOneLine) {
    const written = `${JSON.stringify(name)}: ${inOneLine(value)}`;
    return comma === undefined
      ? splice(text, last.offset + last.length, 0, `, ${written}`)
      : splice(text, comma + 1, 0, ` ${written},`);
  }
  const startsLine = /^[ \t]*$/.test(text.slice(lineStart(text, last.offset), last.offset));
  const indent = startsLine ? indentAt(text, last.offset) : indentAt(text, open) + unit;
  const written = eol + indent + property(name, value, { ...style, indent });
  // The comma goes after the former last property, or after ours if the file uses trailing commas.
  if (comma !== undefined) return splice(text, lineEnd, 0, `${written},`);
  return splice(splice(text, lineEnd, 0, written), last.offset + last.length, 0, ",");
}

/** Finds the comma between a property and the closing brace, and the end of comments in the line of the property. */
function findTail(text: string, start: number, close: number): { comma: number | undefined; lineEnd: number } {
  const tail = text.slice(start, close);
  const tokens = [...tail.matchAll(/\/\/[^\r\n]*|\/\*[\s\S]*?\*\/|,/g)];
  const comma = tokens.find(([token]) => token === ",")?.index;
  const from = comma === undefined ? 0 : comma + 1;
  const [sameLine = ""] = /^(?:[ \t]*(?:\/\/[^\r\n]*|\/\*(?:(?!\*\/)[^\r\n])*\*\/))*/.exec(tail.slice(from)) ?? [];
  return { comma: comma === undefined ? undefined : start + comma, lineEnd: start + from + sameLine.length };
}

function removeProperty(text: string, gone: Node): string {
  const { children: siblings = [], length = 0, offset = 0 } = gone.parent ?? {};
  const [start, end] = [gone.offset, gone.offset + gone.length];
  const [previous, next] = [siblings[siblings.indexOf(gone) - 1], siblings[siblings.indexOf(gone) + 1]];
  const { comma } = findTail(text, end, next?.offset ?? offset + length - 1);
  const until = comma === undefined ? end : comma + 1;
  const from = start - (/(?:\r?\n)?[ \t]*$/.exec(text.slice(0, start))?.[0].length ?? 0);
  // Keeps a line break after a line comment, which would otherwise swallow the text after it.
  const keep = /\/\/[^\r\n]*$/.test(text.slice(0, from)) && !/^\s*?[\r\n]/.test(text.slice(until)) ? "\n" : "";
  const without = splice(text, from, until - from, keep);
  if (previous === undefined || comma !== undefined) return without;
  const before = findTail(text, previous.offset + previous.length, start).comma;
  return before === undefined ? without : splice(without, before, 1, "");
}

function replace(text: string, { length, offset }: Node, written: string): string {
  return splice(text, offset, length, written);
}

const splice = (text: string, at: number, gone: number, come: string): string =>
  text.slice(0, at) + come + text.slice(at + gone);

function property(name: string, value: unknown, style: Style & { readonly indent: string }): string {
  return `${JSON.stringify(name)}: ${render(value, style)}`;
}

/** Writes objects over several lines and lists in one, as in `examples/clients`. */
function render(value: unknown, style: Style & { readonly indent: string }): string {
  const parsed = JsonObject.safeParse(value);
  if (!parsed.success || Array.isArray(value)) return inOneLine(value);
  const indent = style.indent + style.unit;
  const lines = Object.entries(parsed.data).map(([name, each]) => indent + property(name, each, { ...style, indent }));
  return ["{", lines.join(`,${style.eol}`), `${style.indent}}`].join(style.eol);
}

function inOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((each) => inOneLine(each)).join(", ")}]`;
  const parsed = JsonObject.safeParse(value);
  if (!parsed.success) return JSON.stringify(value);
  const all = Object.entries(parsed.data).map(([name, each]) => `${JSON.stringify(name)}: ${inOneLine(each)}`);
  return `{ ${all.join(", ")} }`;
}
