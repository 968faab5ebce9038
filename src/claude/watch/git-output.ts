/** Parses the output of git commands. All paths are relative to the folder of the session. */

/** Entry of `git status`: a path whose file, or whose entry in the index, differs from `HEAD`. */
export interface DirtyPath {
  readonly path: string;
  readonly isTracked: boolean;
  /** True if the entry in the index differs from `HEAD`. */
  readonly isStaged: boolean;
  /** True if `HEAD` has no such path. */
  readonly isAdded?: boolean;
  /** Commit of a submodule in the index. */
  readonly submodule?: string | undefined;
  /** True if git has been told not to look at the file. */
  readonly isMarked?: boolean;
  /** Id of the content that the index wrongly claims for the file. */
  readonly claimedId?: string;
}

export interface GitStatus {
  readonly head: string | undefined;
  readonly branch: string | undefined;
  readonly dirty: readonly DirtyPath[];
  /** Repositories of their own inside the work tree, without `/` at the end. */
  readonly nested: readonly string[];
}

/** Parses `git status --porcelain=v2 -z --branch --no-renames`. `prefix`: path of the session's folder in the work tree. */
export function parseStatus(output: string, prefix: string): GitStatus {
  const lines = output.split("\0");
  const header = new Map(
    lines.filter((line) => line.startsWith("# ")).map((line) => [line.split(" ")[1] ?? "", line.split(" ")[2] ?? ""]),
  );
  const below = lines.flatMap((line) => {
    const found = parseDirty(line);
    return found?.path.startsWith(prefix) === true ? [{ ...found, path: found.path.slice(prefix.length) }] : [];
  });
  const [oid, branch] = [header.get("branch.oid"), header.get("branch.head")];
  return {
    head: oid === "(initial)" ? undefined : oid,
    branch: branch === "(detached)" ? undefined : branch,
    dirty: below.filter(({ path }) => !path.endsWith("/")),
    nested: below.flatMap(({ path }) => (path.endsWith("/") ? [path.slice(0, -1)] : [])),
  };
}

/** Number of fields before the path in each kind of line about a tracked path. */
const FIELDS: Readonly<Record<string, number>> = { "1": 8, u: 10 };

function parseDirty(line: string): DirtyPath | undefined {
  if (line.startsWith("? ")) return { path: line.slice(2), isTracked: false, isStaged: false };
  const parts = line.split(" ");
  const [kind = "", state = "", submodule = ""] = parts;
  const before = FIELDS[kind];
  if (before === undefined) return undefined;
  return {
    path: parts.slice(before).join(" "),
    isTracked: true,
    isStaged: !state.startsWith("."),
    isAdded: state.startsWith("A"),
    submodule: submodule.startsWith("S") ? parts[7] : undefined,
  };
}

/** Difference of a path between a commit and the work tree. */
export interface RawChange {
  readonly path: string;
  readonly from: string | undefined;
  readonly status: string;
  readonly oldMode: string;
  readonly newMode: string;
  readonly oldId: string;
  /** `undefined` for a binary file, a link or a submodule. */
  readonly lines: [number, number] | undefined;
}

/** Parses `git diff --raw --numstat -z --no-abbrev`. */
export function parseRaw(output: string): RawChange[] {
  const changes = new Map<string, RawChange>();
  const parts = output.split("\0").values();
  const next = (): string => parts.next().value ?? "";
  for (const part of parts) {
    if (part.startsWith(":")) {
      const [oldMode = "", newMode = "", oldId = "", , status = ""] = part.slice(1).split(" ");
      const from = /^[RC]/.test(status) ? next() : undefined;
      const path = next();
      changes.set(path, { path, from, status: status.slice(0, 1), oldMode, newMode, oldId, lines: undefined });
      continue;
    }
    const [, added, removed, name] = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(part) ?? [];
    // Old and new name of a renamed file follow.
    const [path] = name === "" ? [next(), next()].slice(1) : [name];
    const change = changes.get(path ?? "");
    if (!change || added === "-" || !hasLines(change)) continue;
    changes.set(change.path, { ...change, lines: [Number(added), Number(removed)] });
  }
  return [...changes.values()];
}

/** False for a link or a submodule, whose only line is a target or a commit. */
const hasLines = ({ newMode, oldMode }: RawChange) => ![oldMode, newMode].some((mode) => /^1[26]0000$/.test(mode));

/** Parses `git cat-file --batch`, as far as the output is whole. Returns contents by id. */
export function parseObjects(output: Buffer): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (let at = 0; at < output.length;) {
    const end = output.indexOf("\n", at);
    if (end < 0) break;
    const [id = "", , size] = output.subarray(at, end).toString().split(" ");
    at = end + 1;
    if (size === undefined) continue;
    const length = Number(size);
    if (at + length > output.length) break;
    found.set(id, output.subarray(at, at + length));
    at += length + 1;
  }
  return found;
}

/** Parses `git rev-list --format=%ct%x00%s%x00`, newest first. */
export function parseCommits(output: string): { hash: string; subject: string; at: number }[] {
  return [...output.matchAll(/^commit ([0-9a-f]+)\n(\d+)\0(.*?)\0$/gms)].map(([, hash = "", at, subject = ""]) => ({
    hash,
    subject,
    at: Number(at),
  }));
}
