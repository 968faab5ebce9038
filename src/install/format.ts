/** For a file that this program does not edit, whatever was asked of it. */
export const PRINTED = "install --print prints the entry";

/** A file of a client that is left as it is. The message says why and what to do; it quotes nothing of the file. */
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

/** Where an offset lies in a text. */
export function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split(/\r\n|\n/);
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** The shape of a file with an entry at a path, such as ["mcpServers", "claude-agents-mcp"]. Texts have no byte order mark. */
export interface Format {
  /** The whole file as a value. Throws UnusableFile, also where a name of the path is there twice. */
  readonly parse: (text: string, path: Path) => Readonly<Record<string, unknown>>;
  /** With each value of `entry` at its key; other keys of a present entry are kept, and every byte around it. */
  readonly set: (text: string, path: Path, entry: Entry) => string;
  /** Without the entry; or without its table too, where nothing else is in it. */
  readonly remove: (text: string, path: Path, what: "entry" | "empty table") => string;
}

/** The name of a table of servers, and that of a server in it. */
export type Path = readonly [table: string, name: string];

export type Entry = Readonly<Record<string, string | number | boolean | readonly string[]>>;
