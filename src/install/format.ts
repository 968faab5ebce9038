/** Advice for files that this program does not edit. */
export const PRINTED = "install --print prints the entry";

/** The file of a client is left unchanged. The message has reason and advice, and quotes nothing of the file. */
export class UnusableFile extends Error {
  override readonly name = "UnusableFile";
}

/** Line and column count from 1. */
export function syntaxFault(language: string, problem: string, at: { line: number; column: number }): UnusableFile {
  const place = `line ${String(at.line)}, column ${String(at.column)}`;
  return new UnusableFile(
    `is not valid ${language}: ${problem} (${place}). Repair it, or edit it by hand: ${PRINTED}.`,
  );
}

/** Returns line and column of `offset`. */
export function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split(/\r\n|\n/);
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** Syntax of a file with an entry at a path, such as `["mcpServers", "claude-agents-mcp"]`. Texts have no byte order mark. */
export interface Format {
  /** Parses the whole file. Throws UnusableFile, also if a name of the path occurs twice. */
  readonly parse: (text: string, path: Path) => Readonly<Record<string, unknown>>;
  /** Sets each key of `entry`. Keeps other keys of a present entry, and every byte around it. */
  readonly set: (text: string, path: Path, entry: Entry) => string;
  /** Removes the entry; with "empty table" also its table, if nothing else is in it. */
  readonly remove: (text: string, path: Path, what: "entry" | "empty table") => string;
}

/** Name of a table of servers, and of a server in it. */
export type Path = readonly [table: string, name: string];

export type Entry = Readonly<Record<string, string | number | boolean | readonly string[]>>;
