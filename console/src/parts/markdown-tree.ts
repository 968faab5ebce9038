import { lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { displayText } from "./text.ts";

/**
 * Parses Markdown of an agent to a tree without HTML; unsupported syntax becomes plain text. Time and depth (`MAX_DEPTH`) are
 * bounded for any input.
 */

export type Block =
  /** `level`: heading level on the page, where the text stands below an h2. */
  | { readonly kind: "heading"; readonly level: Level; readonly inside: readonly Inline[] }
  | { readonly kind: "paragraph"; readonly inside: readonly Inline[] }
  | { readonly kind: "code"; readonly language: string; readonly text: string }
  | { readonly kind: "list"; readonly start: number | undefined; readonly items: readonly ListItem[] }
  | { readonly kind: "quote"; readonly blocks: readonly Block[] }
  | { readonly kind: "table"; readonly head: readonly Cell[]; readonly rows: readonly (readonly Cell[])[] }
  | { readonly kind: "rule" }
  /** Source that is not parsed, shown as written. */
  | { readonly kind: "plain"; readonly text: string };

export type Level = 3 | 4 | 5 | 6;

export interface ListItem {
  /** State of a task; `undefined` for other items. */
  readonly checked: boolean | undefined;
  readonly blocks: readonly Block[];
}

export interface Cell {
  readonly align: "center" | "left" | "right" | undefined;
  readonly inside: readonly Inline[];
}

export type Inline =
  | string
  | { readonly kind: "strong" | "em" | "del"; readonly inside: readonly Inline[] }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "link"; readonly href: string; readonly inside: readonly Inline[] }
  | { readonly kind: "break" };

const MAX_DEPTH = 16;
/** Maximum characters parsed as Markdown; the rest becomes a `plain` block. */
const MAX_LENGTH = 60_000;
/** Maximum characters of a paragraph, because `lexer` takes quadratic time. */
const MAX_PARAGRAPH = 8_000;

/** Matches a line that begins with 30 or more marks of nested quotes and lists. */
const DEEP_NESTING = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){30}/m;

export function readMarkdown(written: string): readonly Block[] {
  const text = displayText(written);
  const end = endOfMarkdown(text);
  const rest: Block[] = end < text.length ? [{ kind: "plain", text: text.slice(end) }] : [];
  return [...parseBlocks(text.slice(0, end)), ...rest];
}

function endOfMarkdown(text: string): number {
  if (text.length <= MAX_LENGTH) return text.length;
  const newline = text.lastIndexOf("\n", MAX_LENGTH);
  return newline > MAX_LENGTH / 2 ? newline + 1 : MAX_LENGTH;
}

function parseBlocks(text: string): readonly Block[] {
  if (DEEP_NESTING.test(text) || longestParagraph(text) > MAX_PARAGRAPH) return [{ kind: "plain", text }];
  try {
    return fixLevels(blocksOf(lexer(text), 0));
  } catch {
    // `lexer` has overflowed the stack.
    return [{ kind: "plain", text }];
  }
}

/** Limits `level` to one more than the previous heading's, so that no level is skipped on the way down. */
function fixLevels(blocks: readonly Block[]): readonly Block[] {
  let last = 2;
  return blocks.map((block) => {
    if (block.kind !== "heading") return block;
    const level = LEVELS.find((each) => each === Math.min(block.level, last + 1)) ?? 3;
    last = level;
    return { ...block, level };
  });
}

const LEVELS = [3, 4, 5, 6] as const;

function longestParagraph(text: string): number {
  return Math.max(...text.split(/\n[ \t]*\n/).map((part) => part.length));
}

function blocksOf(tokens: readonly Token[], depth: number): Block[] {
  return tokens.flatMap((token) => blockOf(token, depth));
}

function blockOf(token: Token, depth: number): Block[] {
  if (depth > MAX_DEPTH || !isKnown(token) || token.type === "html") return [{ kind: "plain", text: token.raw }];
  if (token.type === "space" || token.type === "def") return [];
  if (token.type === "hr") return [{ kind: "rule" }];
  if (token.type === "heading") return [headingOf(token, depth)];
  if (token.type === "code") return [{ kind: "code", language: languageOf(token), text: token.text }];
  if (token.type === "blockquote") return [{ kind: "quote", blocks: blocksOf(token.tokens, depth + 1) }];
  if (token.type === "list") return [listOf(token, depth)];
  if (token.type === "table") return [tableOf(token, depth)];
  const inside = token.type === "paragraph" ? inlinesOf(token.tokens, depth) : inlineOf(token, depth);
  return inside.length === 0 ? [] : [{ kind: "paragraph", inside }];
}

const KNOWN: ReadonlySet<string> = new Set(
  "space def hr heading code blockquote list list_item table html paragraph text"
    .split(" ")
    .concat("br codespan checkbox del em escape image link strong".split(" ")),
);

function isKnown(token: Token): token is MarkedToken {
  return KNOWN.has(token.type);
}

function languageOf({ lang = "" }: Tokens.Code): string {
  return /^[\w+#.-]{1,30}/.exec(lang)?.[0] ?? "";
}

/** Returns bold text for a heading inside a list or a quote, which must not appear in the outline of the page. */
function headingOf({ depth: rank, tokens }: Tokens.Heading, depth: number): Block {
  const inside = inlinesOf(tokens, depth);
  if (depth > 0) return { kind: "paragraph", inside: [{ kind: "strong", inside }] };
  return { kind: "heading", level: LEVELS[Math.min(rank, LEVELS.length) - 1] ?? 6, inside };
}

function listOf({ items, ordered, start }: Tokens.List, depth: number): Block {
  return {
    kind: "list",
    start: ordered ? Number(start) : undefined,
    items: items.map(({ checked, task, tokens }) => ({
      checked: task ? checked === true : undefined,
      blocks: blocksOf(tokens, depth + 1),
    })),
  };
}

function tableOf({ header, rows }: Tokens.Table, depth: number): Block {
  const cell = ({ align, tokens }: Tokens.TableCell): Cell => ({
    align: align ?? undefined,
    inside: inlinesOf(tokens, depth),
  });
  return { kind: "table", head: header.map(cell), rows: rows.map((row) => row.map(cell)) };
}

function inlinesOf(tokens: readonly Token[], depth: number): Inline[] {
  return tokens.flatMap((token) => inlineOf(token, depth));
}

function inlineOf(token: Token, depth: number): Inline[] {
  if (depth > MAX_DEPTH || !isKnown(token)) return [token.raw];
  const { type } = token;
  if (type === "strong" || type === "em" || type === "del")
    return [{ kind: type, inside: inlinesOf(token.tokens, depth + 1) }];
  if (type === "codespan") return [{ kind: "code", text: token.text }];
  if (type === "br") return [{ kind: "break" }];
  if (type === "link") return linkOf(token, inlinesOf(token.tokens, depth + 1));
  if (type === "image") return linkOf(token, [`Image: ${token.text === "" ? token.href : token.text}`]);
  if (type === "checkbox") return [];
  if (type === "escape") return [token.text];
  if (type !== "text") return [token.raw];
  return token.tokens ? inlinesOf(token.tokens, depth + 1) : [withoutEntities(token.text)];
}

/** Returns a `link` for web and mail addresses, text and path for a path, and for all else the source `raw` as text. */
function linkOf({ href, raw }: Tokens.Link | Tokens.Image, inside: Inline[]): Inline[] {
  const to = withoutEntities(href);
  const safe = safeHref(to);
  if (safe !== undefined) return [{ kind: "link", href: safe, inside }];
  if (!isPath(to)) return [raw];
  const isSame = inside.length === 1 && inside[0] === to;
  return isSame || to.startsWith("#") ? inside : [...inside, " (", { kind: "code", text: to }, ")"];
}

/** True for a path of the agent's file system, which no browser can open, or for an anchor in the text. */
function isPath(href: string): boolean {
  return href !== "" && !/^(?:[a-z][a-z\d+.-]*:|[\\/]{2})/i.test(href);
}

const SAFE: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);

/** `undefined` for relative URLs, which would lead into this console, and for schemes that run code or read files. */
export function safeHref(href: string): string | undefined {
  if (!/^(?:https?:\/\/|mailto:)/i.test(href) || !URL.canParse(href)) return undefined;
  const url = new URL(href);
  return SAFE.has(url.protocol) ? url.href : undefined;
}

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00A0" };

/** Decodes entities left by `marked`. Safe, because the result is only ever shown as text. */
function withoutEntities(text: string): string {
  return displayText(text.replace(ENTITY, decode));
}

const ENTITY = /&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,7})|#x([\da-f]{1,6}));/gi;

function decode(all: string, ...[name, decimal, hex]: readonly unknown[]): string {
  if (typeof name === "string") return NAMED[name.toLowerCase()] ?? all;
  const code = typeof decimal === "string" ? Number(decimal) : Number.parseInt(String(hex), 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
}
