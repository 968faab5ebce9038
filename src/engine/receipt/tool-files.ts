import type { JsonObject } from "../../domain/json.ts";
import type { Comparison, FileChange } from "../../domain/receipt.ts";
import { pathBelow, slashed } from "../policy/rule-path.ts";
import type { ToolOutcome } from "./ran-command.ts";

/** Files that tools report as changed, beside those that the tree shows. */

/** Input field with the path, by tool. */
const PATH_FIELDS: ReadonlyMap<string, string> = new Map([
  ["Edit", "file_path"],
  ["MultiEdit", "file_path"],
  ["NotebookEdit", "notebook_path"],
  ["Write", "file_path"],
]);

/** Maximum number of files kept for a turn. */
const MAX_FILES = 5_000;

interface ToolFile {
  readonly by: Set<string>;
  /** First change, which decides between a new and a changed file. */
  readonly change: "added" | "changed";
}

export interface Places {
  /** Names of the session's folder: as its options name it, and the real path if different. */
  readonly cwd: readonly string[];
  /** Other folders of the session, by any name. */
  readonly folders: readonly string[];
  /** Absolute paths, as tools report them, that a comparison cannot see: ignored by git, in a skipped folder. */
  readonly outOfSight: ReadonlySet<string>;
}

export class ToolFiles {
  readonly #files = new Map<string, ToolFile>();
  #omitted = 0;

  /** Number of files beyond the maximum. */
  get omitted(): number {
    return this.#omitted;
  }

  /** Absolute paths as reported. */
  get paths(): string[] {
    return [...this.#files.keys()];
  }

  /** Notes a successful call. Ignores tools that change no file. */
  note(tool: string, input: JsonObject, outcome: ToolOutcome): void {
    const path = input[PATH_FIELDS.get(tool) ?? ""];
    if (typeof path !== "string" || path === "" || outcome.isError || !outcome.isWhole) return;
    const known = this.#files.get(path);
    if (known) known.by.add(tool);
    else if (this.#files.size >= MAX_FILES) this.#omitted += 1;
    else this.#files.set(path, { by: new Set([tool]), change: changeOf(tool, outcome) });
  }

  /**
   * Adds the tools to the files of the tree. Lists a file that the tree does not show only where the tree cannot see it:
   * elsewhere the file was changed back.
   */
  mergeInto(comparison: Pick<Comparison, "by" | "complete" | "files">, places: Places): FileChange[] {
    const byPath = new Map(comparison.files.map((file) => [file.path, { ...file, by: [...file.by] }]));
    const isBlind = comparison.by === "tools" || !comparison.complete;
    for (const [path, { by, change }] of this.#files) {
      const inside = pathIn(places.cwd, path);
      const seen = byPath.get(inside ?? path) ?? byPath.get(path);
      if (seen) seen.by.push(...[...by].filter((tool) => !seen.by.includes(tool)));
      else if (isInside(places, path) && (isBlind || places.outOfSight.has(path)))
        byPath.set(inside ?? path, { path: inside ?? path, change, by: [...by] });
    }
    return [...byPath.values()];
  }

  /** Returns the files outside the session's folders. */
  outside(places: Places): string[] {
    return this.paths.filter((path) => !isInside(places, path)).toSorted();
  }
}

function changeOf(tool: string, { content, structured }: ToolOutcome): ToolFile["change"] {
  if (tool !== "Write") return "changed";
  // A subagent's result has the text only.
  const created = structured ? structured["type"] === "create" : typeof content === "string" && CREATED.test(content);
  return created ? "added" : "changed";
}

const CREATED = /^File created successfully/;

function isInside({ cwd, folders }: Places, path: string): boolean {
  return pathIn([...cwd, ...folders], path) !== undefined;
}

/** Returns the path below the first of the folders that has it, with `/` between names. */
function pathIn(folders: readonly string[], path: string): string | undefined {
  for (const folder of folders) {
    const below = pathBelow(slashed(folder), slashed(path));
    if (below !== undefined && !below.split("/").includes("..")) return below;
  }
  return undefined;
}
