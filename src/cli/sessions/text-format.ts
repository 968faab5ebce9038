import { homedir } from "node:os";
import { statusOf, type SessionStatus } from "../../domain/session.ts";
import type { JsonObject } from "../../domain/json.ts";
import { stripControlChars, escapeControlChars } from "../../security/control-chars.ts";
import type { SessionRecord } from "./store.ts";

/** Formats values for people. */

export function oneLine(text: string, most: number): string {
  // Keeps far more than is shown, but far less than a prompt may hold.
  const line = stripControlChars(text.slice(0, most * 4).replaceAll(/\s+/g, " ")).trim();
  const characters = Array.from(line);
  return characters.length <= most ? line : `${characters.slice(0, most - 1).join("")}…`;
}

/** Formats a line for programs. Escaped, because a terminal may show it, too. */
export function jsonLine(value: unknown): string {
  return `${escapeControlChars(JSON.stringify(value))}\n`;
}

/** Removes control characters except line breaks and tabs. */
export function stripControls(text: string): string {
  return stripControlChars(text, "\n\t");
}

/** Status, or "abandoned" for a turn that the next server will record as lost. */
export type StatusWord = SessionStatus | "abandoned";

export function statusWord(record: SessionRecord): StatusWord {
  return isTurnAbandoned(record) ? "abandoned" : statusOf(record.state);
}

/** True if a turn is recorded as running, but its server is gone. (An idle session keeps its status.) */
export function isTurnAbandoned({ owner, state }: SessionRecord): boolean {
  return owner?.alive !== true && state.turn !== null;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
] as const;

/** Formats a rough duration in a single unit: 45s, 3m, 5h, 12d. */
export function roughDuration(ms: number): string {
  const [unit, length] = UNITS.find(([, each]) => ms >= each) ?? ["s", 1000];
  return `${String(Math.max(0, Math.floor(ms / length)))}${unit}`;
}

/** Formats a duration, with a decimal below 10 s. */
export function duration(ms: number): string {
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)}s` : roughDuration(ms);
}

/** Shows a cost too small for four digits as such, not as 0. */
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

/** Shortens a path: ~ for the home folder, and of a long path only the end, which tells most. */
export function shortPath(path: string, most: number): string {
  const home = homedir();
  const short = path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
  const characters = Array.from(oneLine(short, short.length));
  return characters.length <= most ? characters.join("") : `…${characters.slice(1 - most).join("")}`;
}

/** Fields of a tool's input; the first present one describes the call. */
const SUBJECTS = ["command", "file_path", "notebook_path", "url", "pattern", "query", "skill", "description", "path"];
const MAX_SUBJECT = 160;

/** Returns the purpose of a tool call, in one line. */
export function callSubject(input: JsonObject): string {
  const field = SUBJECTS.map((key) => input[key]).find((value) => typeof value === "string");
  if (typeof field === "string") return oneLine(field, MAX_SUBJECT);
  return Object.keys(input).length === 0 ? "" : oneLine(JSON.stringify(input), MAX_SUBJECT);
}
