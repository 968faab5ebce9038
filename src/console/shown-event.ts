import type { StoredEvent } from "../domain/event.ts";
import type { Snapshot } from "../domain/receipt.ts";
import type { ShownEvent } from "./wire.ts";

/**
 * Events as sent to the page. Texts longer than `MAX_TEXT` are cut. Values nested deeper than `MAX_DEPTH` become "…", because
 * recursive code would fail on tool inputs nested arbitrarily deep. Base64 of files (images, PDFs) is replaced by its length,
 * which does not set `cut`: the page loads the whole event to show the file.
 */

/** Limits: characters per text, levels of nesting per event, characters of base64 up to which a file is sent inline. */
const [MAX_TEXT, MAX_DEPTH, SMALL_FILE] = [10_000, 100, 200];

export function shownEvent(stored: StoredEvent): ShownEvent {
  const event = withoutSnapshot(stored);
  const [isCut, hasFile] = [exceedsLimits(event, 0), hasFiles(event, 0)];
  if (!isCut && !hasFile) return event;
  const copy: StoredEvent = { ...event };
  for (const [key, inside] of Object.entries(event)) Reflect.set(copy, key, cut(inside, 1));
  return isCut ? { ...copy, cut: true } : copy;
}

/** Empties the state of the folders, a stamp for each changed file, which the page does not show. */
function withoutSnapshot(event: StoredEvent): StoredEvent {
  if (event.type === "turn.baseline") return { ...event, data: { ...event.data, before: NO_SNAPSHOT } };
  if (event.type === "turn.receipt") return { ...event, data: { ...event.data, after: NO_SNAPSHOT } };
  return event;
}

const NO_SNAPSHOT: Snapshot = { folders: [] };

function exceedsLimits(value: unknown, depth: number): boolean {
  if (typeof value === "string") return value.length > MAX_TEXT;
  if (typeof value !== "object" || value === null) return false;
  if (depth >= MAX_DEPTH) return true;
  const file = fileFieldOf(value);
  return Object.entries(value).some(([key, inside]) => key !== file && exceedsLimits(inside, depth + 1));
}

function hasFiles(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null || depth >= MAX_DEPTH) return false;
  return fileFieldOf(value) !== undefined || Object.values(value).some((inside) => hasFiles(inside, depth + 1));
}

/**
 * Returns the field with the base64 of a file: in a `source` of Claude's API, an attachment of a prompt, a block of an MCP
 * server, or the structured tool result of Claude Code.
 */
function fileFieldOf(value: object): "base64" | "data" | undefined {
  if (isLongBase64(value, "base64")) return "base64";
  if (!isLongBase64(value, "data")) return undefined;
  const isNamed = ["mediaType", "mimeType"].some((name) => typeof Reflect.get(value, name) === "string");
  return isNamed || Reflect.get(value, "type") === "base64" ? "data" : undefined;
}

/** Checks the content, so that a text that only claims to be a file stays visible: a person may decide by the text. */
function isLongBase64(value: object, field: string): boolean {
  const base64: unknown = Reflect.get(value, field);
  return typeof base64 === "string" && base64.length > SMALL_FILE && BASE64.test(base64);
}

const BASE64 = /^[\w+/=\r\n-]+$/;

function cut(value: unknown, depth: number): unknown {
  if (typeof value === "string") return value.length > MAX_TEXT ? beginningOf(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return "…";
  if (Array.isArray(value)) return value.map((inside) => cut(inside, depth + 1));
  const file = fileFieldOf(value);
  return Object.fromEntries(
    Object.entries(value).map(([key, inside]) => [
      key,
      key === file ? `[${sizeText(inside)}]` : cut(inside, depth + 1),
    ]),
  );
}

function sizeText(base64: unknown): string {
  return `${String(base64).length.toLocaleString("en-US")} characters of base64`;
}

/** Drops a lone high surrogate at the end, which would make the text invalid. */
function beginningOf(text: string): string {
  return text.slice(0, MAX_TEXT).replace(/[\uD800-\uDBFF]$/, "");
}
