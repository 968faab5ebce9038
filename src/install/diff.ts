import { structuredPatch } from "diff";
import { escapeControlChars } from "../security/control-chars.ts";

/** The change of a file as a unified diff, for a terminal. */

/** A file in one line would fill the screen. */
const MAX_COLUMNS = 160;
const AROUND = 40;

export interface Shown {
  readonly before: string;
  readonly after: string;
  readonly mask: (text: string) => string;
}

export function diffText({ after, before, mask }: Shown): string {
  const { hunks } = structuredPatch("", "", before, after, undefined, undefined, { context: 1 });
  const lines = hunks.flatMap((hunk) => [
    `@@ line ${String(hunk.newStart)} @@`,
    ...shortened(linesOf(hunk.lines).map((line) => mask(withoutValue(line)))).map(clean),
  ]);
  return lines.map((line) => `${line}\n`).join("");
}

/** Without the remark that a file has no line break at its end. */
function linesOf(lines: readonly string[]): string[] {
  return lines.filter((line) => !line.startsWith("\\"));
}

/** The value of a name such as API_KEY: those of other servers may stand beside the entry, or those that a user has added to it. */
function withoutValue(line: string): string {
  return line.replaceAll(SECRET, "$1[masked]$2");
}

const SECRET = /("?[\w-]*(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|COOKIE|AUTH)[\w-]*"?\s*[:=]\s*")(?:[^"\\]|\\.)*("?)/gi;

function clean(line: string): string {
  return line
    .replace(/\r$/, "")
    .split("\t")
    .map((part) => escapeControlChars(part))
    .join("\t");
}

/** Of long lines only what differs from the line that takes their place, or the beginning. */
function shortened(lines: readonly string[]): string[] {
  return lines.map((line, at) => {
    if (line.length <= MAX_COLUMNS) return line;
    const other = (line.startsWith("-") ? lines[at + 1] : lines[at - 1]) ?? "";
    if (line.startsWith(" ") || other.length <= MAX_COLUMNS) return `${line.slice(0, MAX_COLUMNS)}...`;
    const start = Math.max(1, same(line.slice(1), other.slice(1)) + 1 - AROUND);
    const end = line.length - Math.max(0, same(reversed(line), reversed(other)) - AROUND);
    return `${line[0] ?? ""}...${line.slice(start, Math.max(end, start))}...`;
  });
}

function same(one: string, other: string): number {
  let count = 0;
  while (count < Math.min(one.length, other.length) && one[count] === other[count]) count += 1;
  return count;
}

const reversed = (text: string): string => text.split("").toReversed().join("");
