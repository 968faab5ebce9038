/** Parses the output of git commands. All paths are relative to the folder of the session. */

/** Entry of `git status`: a path whose file, or whose entry in the index, differs from `HEAD`. */
export interface DirtyPath {
  readonly path: string;
  readonly isTracked: boolean;
  readonly isSubmodule: boolean;
}

export interface GitStatus {
  readonly head: string | undefined;
  readonly branch: string | undefined;
  readonly dirty: readonly DirtyPath[];
  /** Repositories of their own inside the work tree, without `/` at the end. */
  readonly nested: readonly string[];
}

/** Number of fields before the path in each kind of line. */
const FIELDS: Readonly<Record<string, number>> = { "1": 8, u: 10 };

/** Parses `git status --porcelain=v2 -z --branch --no-renames`. `prefix`: path of the session's folder in the work tree. */
export function parseStatus(output: string, prefix: string): GitStatus {
  const header = new Map<string, string>();
  const dirty: DirtyPath[] = [];
  const nested: string[] = [];
  const relative = (path: string) => (path.startsWith(prefix) ? path.slice(prefix.length) : undefined);
  for (const line of output.split("\0")) {
    const [kind = ""] = line;
    if (kind === "#") {
      const [, name = "", value = ""] = line.split(" ");
      header.set(name, value);
    }
    if (kind === "?") {
      const path = relative(line.slice(2));
      if (path?.endsWith("/") === true) nested.push(path.slice(0, -1));
      else if (path !== undefined) dirty.push({ path, isTracked: false, isSubmodule: false });
    }
    const before = FIELDS[kind];
    if (before === undefined) continue;
    const parts = line.split(" ");
    const path = relative(parts.slice(before).join(" "));
    const isSubmodule = parts[2]?.startsWith("S") === true;
    if (path !== undefined) dirty.push({ path, isTracked: true, isSubmodule });
  }
  const [oid, branch] = [header.get("branch.oid"), header.get("branch.head")];
  return {
    head: oid === "(initial)" ? undefined : oid,
    branch: branch === "(detached)" ? undefined : branch,
    dirty,
    nested,
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

/** Old and new text of a file. */
export interface FileTexts {
  readonly before: string;
  readonly after: string;
}

/** Parses a patch with so much context that it holds the whole files. Returns the texts by new path, or the old one of a deleted file. */
export function parseWholePatch(output: string): Map<string, FileTexts> {
  const texts = new Map<string, FileTexts>();
  for (const section of output.split(/^(?=diff --git )/m)) {
    const start = section.search(/^@@ /m);
    const head = start < 0 ? section : section.slice(0, start);
    const path = pathAfter(head, "+++") ?? pathAfter(head, "---");
    if (path === undefined || start < 0) continue;
    const [before, after]: [string[], string[]] = [[], []];
    for (const line of section.slice(start).split("\n").slice(1)) {
      if (line.startsWith("\\")) continue;
      if (!line.startsWith("+")) before.push(line.slice(1));
      if (!line.startsWith("-")) after.push(line.slice(1));
    }
    texts.set(path, { before: before.join("\n"), after: after.join("\n") });
  }
  return texts;
}

function pathAfter(head: string, mark: "+++" | "---"): string | undefined {
  const line = head.split("\n").find((each) => each.startsWith(`${mark} `));
  const name = line?.slice(4).replace(/\t$/, "");
  if (name === undefined || name === "/dev/null") return undefined;
  return (name.startsWith('"') ? unquote(name) : name).slice(2);
}

const ESCAPES: Readonly<Record<string, string>> = { a: "\x07", b: "\b", t: "\t", n: "\n", v: "\v", f: "\f", r: "\r" };

/** Decodes a name that git has quoted as in C. */
function unquote(name: string): string {
  return name
    .slice(1, -1)
    .replace(/\\(?:(\d{3})|(.))/g, (_, octal: string | undefined, letter: string) =>
      octal === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(octal, 8)),
    );
}

/** Parses `git rev-list --format=%ct%x00%s%x00`, newest first. */
export function parseCommits(output: string): { hash: string; subject: string; at: number }[] {
  return [...output.matchAll(/^commit ([0-9a-f]+)\n(\d+)\0(.*?)\0$/gms)].map(([, hash = "", at, subject = ""]) => ({
    hash,
    subject,
    at: Number(at),
  }));
}
