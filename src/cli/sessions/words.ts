import { homedir } from "node:os";
import { statusOf, type SessionStatus } from "../../domain/session.ts";
import type { JsonObject } from "../../domain/json.ts";
import { stripControlChars, escapeControlChars } from "../../security/control-chars.ts";
import type { SessionRecord } from "./store.ts";

/** How things are told to people. */

export function oneLine(text: string, most: number): string {
  // Far more than is shown, and far less than a prompt may hold.
  const line = stripControlChars(text.slice(0, most * 4).replaceAll(/\s+/g, " ")).trim();
  const characters = Array.from(line);
  return characters.length <= most ? line : `${characters.slice(0, most - 1).join("")}…`;
}

/** A line for programs, which may be shown on a terminal all the same. */
export function jsonLine(value: unknown): string {
  return `${escapeControlChars(JSON.stringify(value))}\n`;
}

/** Lines stay lines. */
export function harmless(text: string): string {
  return stripControlChars(text, "\n\t");
}

/** The status, and a word of its own for what the next server to look will find lost. */
export type StatusWord = SessionStatus | "abandoned";

export function statusWord(record: SessionRecord): StatusWord {
  return isTurnAbandoned(record) ? "abandoned" : statusOf(record.state);
}

/** A turn is recorded as running, and the server that ran it is gone. (An idle session whose server is gone keeps its status here.) */
export function isTurnAbandoned({ owner, state }: SessionRecord): boolean {
  return owner?.alive !== true && state.turn !== null;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
] as const;

/** About how long, in one unit: 45s, 3m, 5h, 12d. */
export function span(ms: number): string {
  const [unit, length] = UNITS.find(([, each]) => ms >= each) ?? ["s", 1000];
  return `${String(Math.max(0, Math.floor(ms / length)))}${unit}`;
}

/** How long something took. */
export function duration(ms: number): string {
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)}s` : span(ms);
}

/** Tells a cost that is too small for four digits as such, not as nothing. */
export function usd(amount: number): string {
  if (amount > 0 && amount < 0.0001) return "<$0.0001";
  return `$${amount.toFixed(amount >= 1 ? 2 : 4)}`;
}

export function count(number: number, word: string, plural = `${word}s`): string {
  return `${String(number)} ${number === 1 ? word : plural}`;
}

export function isoTime(at: number): string {
  return new Date(at).toISOString();
}

/** The folder as the user knows it; of a long path the end, which tells more. */
export function folder(path: string, most: number): string {
  const home = homedir();
  const short = path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
  const characters = Array.from(oneLine(short, short.length));
  return characters.length <= most ? characters.join("") : `…${characters.slice(1 - most).join("")}`;
}

/** The field of a tool's input that says what the call is about, whatever the tool. */
const SUBJECTS = ["command", "file_path", "notebook_path", "url", "pattern", "query", "skill", "description", "path"];
const MAX_SUBJECT = 160;

/** What a tool is called for, in one line. */
export function subject(input: JsonObject): string {
  const field = SUBJECTS.map((key) => input[key]).find((value) => typeof value === "string");
  if (typeof field === "string") return oneLine(field, MAX_SUBJECT);
  return Object.keys(input).length === 0 ? "" : oneLine(JSON.stringify(input), MAX_SUBJECT);
}
