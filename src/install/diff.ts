import { structuredPatch } from "diff";
import { escapeControlChars } from "../security/control-chars.ts";

/** Formats the change of a file as a unified diff, for a terminal. */

/** Maximum length of a line, characters, because a file in one line would fill the screen. */
const MAX_COLUMNS = 160;
const CONTEXT_COLUMNS = 40;

export interface FileChange {
  readonly before: string;
  readonly after: string;
  readonly mask: (text: string) => string;
}

export function diffText({ after, before, mask }: FileChange): string {
  const { hunks } = structuredPatch("", "", before, after, undefined, undefined, { context: 1 });
  const lines = hunks.flatMap((hunk) => [
    `@@ line ${String(hunk.newStart)} @@`,
    ...cutLines(linesOf(hunk.lines).map((line) => mask(maskSecret(line)))).map(escapeLine),
  ]);
  return lines.map((line) => `${line}\n`).join("");
}

/** Drops diff's remark "\ No newline at end of file". */
function linesOf(lines: readonly string[]): string[] {
  return lines.filter((line) => !line.startsWith("\\"));
}

/**
 * Masks the value of a field named like a secret (API_KEY), because nearby entries and keys added by the user may be secret.
 */
function maskSecret(line: string): string {
  return line.replaceAll(SECRET, "$1[masked]$2");
}

const SECRET = /("?[\w-]*(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|COOKIE|AUTH)[\w-]*"?\s*[:=]\s*")(?:[^"\\]|\\.)*("?)/gi;

function escapeLine(line: string): string {
  return line
    .replace(/\r$/, "")
    .split("\t")
    .map((part) => escapeControlChars(part))
    .join("\t");
}

/** Cuts long lines to the part that differs from their counterpart, or to their start. */
function cutLines(lines: readonly string[]): string[] {
  return lines.map((line, at) => {
    if (line.length <= MAX_COLUMNS) return line;
    const other = (line.startsWith("-") ? lines[at + 1] : lines[at - 1]) ?? "";
    if (line.startsWith(" ") || other.length <= MAX_COLUMNS) return `${line.slice(0, MAX_COLUMNS)}...`;
    const start = Math.max(1, commonPrefix(line.slice(1), other.slice(1)) + 1 - CONTEXT_COLUMNS);
    const end = line.length - Math.max(0, commonPrefix(reversed(line), reversed(other)) - CONTEXT_COLUMNS);
    return `${line[0] ?? ""}...${line.slice(start, Math.max(end, start))}...`;
  });
}

function commonPrefix(one: string, other: string): number {
  let count = 0;
  while (count < Math.min(one.length, other.length) && one[count] === other[count]) count += 1;
  return count;
}

const reversed = (text: string): string => text.split("").toReversed().join("");
