import { appendFileSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createFolderWatch } from "../../../src/claude/watch/folder-watch.ts";
import type { ClaudeDependencies } from "../../../src/claude/dependencies.ts";
import { EnvironmentRecords } from "../../../src/claude/environment-records.ts";
import type { Confinement } from "../../../src/domain/principal.ts";
import type { Comparison, Snapshot } from "../../../src/domain/receipt.ts";
import { ENVIRONMENT, gitIn } from "../git-repository.ts";
import { afterAll } from "vitest";
import { dependenciesFor, placementOf } from "./confined-runtime.ts";

/** Settings of a watch: terms of the user, further dependencies, and variables of the session. */
interface Watching {
  readonly confinement?: Partial<Confinement>;
  readonly dependencies?: Partial<ClaudeDependencies>;
  readonly env?: Record<string, string>;
  readonly folders?: string[];
  /** Path of the session's folder in the repository. */
  readonly below?: string;
}

/** A folder in a repository. */
export class Place {
  readonly cwd: string;
  readonly git: ReturnType<typeof gitIn>;

  constructor(cwd: string) {
    this.cwd = cwd;
    this.git = gitIn(cwd);
  }

  path(path: string): string {
    return join(this.cwd, path);
  }

  write(path: string, text: Buffer | string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true });
    writeFileSync(this.path(path), text);
  }

  append(path: string, text: string): void {
    appendFileSync(this.path(path), text);
  }
}

/** A folder, at first a repository with a commit, and the watch of a session in it. */
export class WatchedFolder extends Place {
  readonly place: string;
  readonly state: string;

  /** `template`: folder made by `commitFiles`, copied because git takes long. */
  constructor(template?: WatchedFolder) {
    const place = realpathSync(mkdtempSync(join(tmpdir(), "watch-")));
    super(join(place, "work"));
    [this.place, this.state] = [place, join(place, "state")];
    mkdirSync(this.cwd);
    if (template) cpSync(template.cwd, this.cwd, { recursive: true, preserveTimestamps: true });
  }

  commitFiles(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) this.write(path, text);
    this.git("init", "-q", "-b", "main");
    this.commit("begin");
  }

  /** Returns the id of the new commit. */
  commit(subject: string): string {
    this.git("add", "-A");
    this.git("commit", "-qm", subject, "--allow-empty");
    return this.head();
  }

  head(): string {
    return this.git("rev-parse", "HEAD").trim();
  }

  watch({ below = ".", confinement = {}, dependencies = {}, env = {}, folders }: Watching = {}) {
    const config = dependenciesFor(confinement, {
      stateFolder: this.state,
      environments: new EnvironmentRecords(Buffer.alloc(32), { ...ENVIRONMENT, ...env }),
      ...dependencies,
    });
    // Built, because Node cannot run the source.
    const program = join(import.meta.dirname, "../../../dist/claude/watch/walk-process.js");
    const options = { cwd: this.path(below), ...(folders && { additionalDirectories: folders }) };
    return { watch: createFolderWatch(config, program), session: placementOf(options) };
  }

  /** Compares the folder before and after `act`. */
  async turn(act: () => void, watching: Watching = {}): Promise<Comparison & { readonly before: Snapshot }> {
    const { session, watch } = this.watch(watching);
    const before = await watch.look(session, "turn 1");
    act();
    const compared = await watch.compare(session, before, "turn 1");
    await watch.forget("turn 1");
    return { ...compared, before };
  }

  remove(): void {
    rmSync(this.place, { recursive: true, force: true });
  }
}

/** Returns each change as a short text: `A path +lines -lines`, with numbers of tests. */
export function shortened({ files }: Pick<Comparison, "files">): string[] {
  return files.map(({ change, from, lines, path, tests }) => {
    const count = lines ? [`+${String(lines[0])} -${String(lines[1])}`] : [];
    const ofTests = Object.entries(tests ?? {}).map(([name, number]) => `${name} ${String(number)}`);
    return [change, ...(from === undefined ? [] : [from, "to"]), path, ...count, ...ofTests].join(" ");
  });
}

export const FILES = {
  ".gitignore": "ignored/\n",
  "a.txt": "1\n2\n3\n",
  "b.txt": "b1\nb2\nb3\nb4\n",
  "sub/c.txt": "c\n",
  "bin.dat": "\0\x01\x02",
  "test/sums.test.ts": 'it("adds", () => {});\nit("subtracts", () => {});\nit("divides", () => {});\n',
  "test/more.test.ts": 'it("multiplies", () => {});\n',
};

/** Returns makers of folders for one test file: a copy of a repository of `FILES`, and an empty folder. */
export function useWatchedFolders() {
  const template = new WatchedFolder();
  const made = [template];
  template.commitFiles(FILES);
  afterAll(() => {
    for (const each of made) each.remove();
  });
  const keep = (folder: WatchedFolder) => {
    made.push(folder);
    return folder;
  };
  return { copy: () => keep(new WatchedFolder(template)), empty: () => keep(new WatchedFolder()) };
}
