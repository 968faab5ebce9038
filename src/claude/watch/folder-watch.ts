import { join, relative, sep } from "node:path";
import type { Comparison, FileChange, FolderState, Snapshot } from "../../domain/receipt.ts";
import type { FolderWatch, WatchedSession } from "../../engine/ports.ts";
import { isInside } from "../../security/paths.ts";
import type { ClaudeDependencies } from "../dependencies.ts";
import { textsOf, type FoundChange } from "./change.ts";
import { Copies, MAX_COPY_BYTES, type CopySet } from "./copies.ts";
import { Notes } from "./notes.ts";
import { findOutOfSight } from "./out-of-sight.ts";
import { compareRoot } from "./root-compare.ts";
import { lookAtRoot, walkRoot, type RootLook } from "./root-look.ts";
import { findRoots, type RootLimits } from "./roots.ts";
import { testChangesOf } from "./test-changes.ts";
import { countDifferences, Walks, type Stamps } from "./walks.ts";
import { within } from "./within.ts";

/** Watches the folders of sessions: implements the engine's port over read-only git, and a child process outside git. */

/** Part of `compareMs` that is left after a look or comparison, the reading of files, one git, and the opening of a folder, ms. */
const [LIMIT_LEFT_MS, READ_LEFT_MS, GIT_LEFT_MS, OPEN_LEFT_MS] = [100, 300, 400, 1_000];
/** Maximum bytes of files whose contents `look` keeps in memory. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;

/** Kept from a look until `forget`. */
interface Kept {
  /** Time of the look, ms. */
  readonly since: number;
  copies?: CopySet;
  /** Stamps of folders outside git, by path. */
  readonly walks: Map<string, Stamps>;
}

/** `walkProgram`: path of the built program of `walkFiles`, for tests from the sources. */
export function createFolderWatch(config: ClaudeDependencies, walkProgram?: string): FolderWatch {
  const copies = new Copies(config.stateFolder, config.server);
  void copies.sweep();
  const kept = new Map<string, Kept>();
  const parts = { config, walkProgram, walks: new Walks() };
  const limitMs = config.compareMs - LIMIT_LEFT_MS;
  const late = `The folders have not answered within ${String(limitMs / 1_000)} s.`;
  return {
    async look(session, key) {
      const keeping: Kept = { since: Date.now(), walks: new Map() };
      kept.set(key, keeping);
      const until = performance.now() + limitMs;
      const looked = await within(look(session, keeping, parts).catch(failed), limitMs, late);
      if (typeof looked === "string") return unseenSnapshot(session, looked);
      const [snapshot, bytes] = looked;
      const written = await within(copies.write(key, bytes), until - performance.now(), undefined);
      if (kept.get(key) !== keeping) await copies.delete(key);
      else if (written) keeping.copies = written;
      return snapshot;
    },
    async compare(session, before, key, reported = []) {
      const compared = compare(session, before, { ...parts, kept: kept.get(key), reported });
      const found = await within(compared.catch(failed), limitMs, late);
      return typeof found === "string" ? lostComparison(found, unseenSnapshot(session, found)) : found;
    },
    differences: (earlier, later) => differences(earlier, later, parts.walks),
    async forget(key) {
      kept.delete(key);
      await copies.delete(key);
    },
  };
}

const failed = (error: unknown): string =>
  `The folders could not be looked at: ${error instanceof Error ? error.message : String(error)}`;

const unseenSnapshot = ({ options: { cwd } }: WatchedSession, why: string): Snapshot => ({
  folders: [{ path: cwd, kind: "unseen", why }],
});

interface Parts {
  readonly config: ClaudeDependencies;
  readonly walkProgram: string | undefined;
  readonly walks: Walks;
}

function rootLimits({ compareMs }: ClaudeDependencies, notes: Notes): RootLimits {
  return { gitMs: compareMs - GIT_LEFT_MS, openMs: compareMs - OPEN_LEFT_MS, notes };
}

/** Key of a copy in `CopySet`. */
const copyKey = (root: string, path: string): string => `${root}\0${path}`;

/** Collects contents of files, `MAX_KEPT_BYTES` at most. */
class Contents {
  readonly files = new Map<string, Buffer>();
  #left = MAX_KEPT_BYTES;

  keep(name: string, bytes: Buffer, most: number): void {
    if (bytes.length > most || bytes.length > this.#left) return;
    this.#left -= bytes.length;
    this.files.set(name, bytes);
  }
}

async function look(session: WatchedSession, keeping: Kept, parts: Parts): Promise<[Snapshot, Map<string, Buffer>]> {
  const until = performance.now() + parts.config.compareMs - READ_LEFT_MS;
  const notes = new Notes();
  const roots = await findRoots(session, parts.config, rootLimits(parts.config, notes));
  const contents = new Contents();
  const looks = await Promise.all(
    roots.all.map(async (root) =>
      lookAtRoot(root, roots, {
        until,
        notes,
        isFirst: true,
        walkProgram: parts.walkProgram,
        onRead: (path, bytes) => contents.keep(copyKey(root.path, path), bytes, MAX_COPY_BYTES),
      }),
    ),
  );
  for (const { root, stamps } of looks) if (stamps) keeping.walks.set(root.path, stamps);
  return [{ folders: looks.map(({ stamps, state }) => withDigest(state, stamps, parts.walks)) }, contents.files];
}

function withDigest(state: FolderState, stamps: Stamps | undefined, walks: Walks): FolderState {
  return stamps && state.kind === "files" ? { ...state, stamps: walks.add(stamps) } : state;
}

interface Comparing extends Parts {
  readonly kept: Kept | undefined;
  readonly reported: readonly string[];
}

/** Maximum bytes of a changed file that `compare` reads to count lines and tests. */
const MAX_TEXT_BYTES = 1024 * 1024;

async function compare(
  session: WatchedSession,
  before: Snapshot | undefined,
  { config, kept, reported, walkProgram, walks }: Comparing,
): Promise<Comparison> {
  const until = performance.now() + config.compareMs - READ_LEFT_MS;
  const notes = new Notes();
  const roots = await findRoots(session, config, rootLimits(config, notes));
  const compared = await Promise.all(
    roots.all.map(async (root) => {
      const contents = new Contents();
      const earlier = before?.folders.find(({ path }) => path === root.path);
      const looking = { until, notes, isFirst: false, walkProgram, known: earlier?.files, since: kept?.since };
      const onRead = (path: string, bytes: Buffer) => contents.keep(path, bytes, MAX_TEXT_BYTES);
      const seen = await lookAtRoot(root, roots, { ...looking, onRead });
      const copies = kept?.copies;
      const found = await compareRoot(seen, {
        before: earlier,
        stamps: kept?.walks.get(root.path) ?? walks.find(earlier?.stamps),
        walk: async () => walkRoot(root, roots, looking),
        copies: copies && { read: async (path) => copies.read(copyKey(root.path, path)) },
        fresh: contents.files,
        since: kept?.since,
        until,
        notes,
      });
      return { seen, found };
    }),
  );
  const after = {
    folders: compared.map(({ found, seen }) => withDigest(seen.state, found?.stamps ?? seen.stamps, walks)),
  };
  if (before === undefined) return lostComparison("The state of the folders before the turn was lost.", after);
  const here = new Set(roots.all.map(({ path }) => path));
  for (const { path } of before.folders) {
    if (!here.has(path)) notes.explain(`${path} is no folder of the session any more: changes in it are not listed.`);
  }
  const own = compared.find(({ seen }) => isInside(roots.own, seen.root.path));
  const all = compared.flatMap(({ found }) => found ?? []);
  const outOfSight = await findOutOfSight(reported, roots.all, notes);
  return {
    by: own?.found && own.found.isPartial !== true ? "tree" : "tools",
    complete: notes.isComplete,
    folders: compared.map(({ seen }) => headsOf(seen, before)),
    files: fileChanges(
      compared.flatMap(({ found, seen }) => (found?.changes ?? []).map((each) => placed(each, seen, roots.own))),
    ),
    // A commit can be in the work tree of a subagent, and merged.
    commits: [...new Map(all.flatMap(({ commits }) => commits).map((each) => [each.hash, each])).values()],
    gitFiles: [...new Set(all.flatMap(({ gitFiles }) => gitFiles))],
    notSeen: [...notes.sentences],
    ...(outOfSight.length > 0 && { outOfSight }),
    own: roots.own,
    after,
  };
}

function lostComparison(why: string, after: Snapshot): Comparison {
  const folders = after.folders.map(({ kind, path }) => ({ path, kind }));
  return { by: "tools", complete: false, folders, files: [], commits: [], gitFiles: [], notSeen: [why], after };
}

function headsOf({ root, state }: RootLook, before: Snapshot): Comparison["folders"][number] {
  const earlier: Partial<FolderState> = before.folders.find(({ path }) => path === state.path) ?? {};
  const headBefore = earlier.head ?? ("madeFrom" in root ? root.madeFrom : undefined);
  return {
    path: state.path,
    kind: state.kind,
    ...(headBefore !== undefined && { headBefore }),
    ...(state.head !== undefined && { headAfter: state.head }),
    ...(earlier.branch !== undefined && { branchBefore: earlier.branch }),
    ...(state.branch !== undefined && { branchAfter: state.branch }),
  };
}

/** Returns the change with paths as a receipt has them. */
function placed(change: FoundChange, { root }: RootLook, own: string): FoundChange {
  const place = (path: string): string => {
    const whole = join(root.path, path);
    return isInside(whole, own) ? relative(own, whole).split(sep).join("/") : whole;
  };
  return { ...change, path: place(change.path), from: change.from === undefined ? undefined : place(change.from) };
}

function fileChanges(changes: readonly FoundChange[]): FileChange[] {
  const tests = testChangesOf(textsOf(changes));
  return changes
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ change, from, lines, path }) => {
      const found = tests.get(path);
      return {
        path,
        change,
        ...(from !== undefined && { from }),
        ...(lines && { lines }),
        ...(found && { tests: found }),
        by: ["tree"],
      };
    });
}

/** Returns the number of paths that differ between two states; `undefined` if a folder or a head makes that unknown. */
function differences(earlier: Snapshot, later: Snapshot, walks: Walks): number | undefined {
  let sum = 0;
  for (const after of later.folders) {
    const before = earlier.folders.find(({ path }) => path === after.path);
    const found = before && differencesIn(before, after, walks);
    if (found === undefined) return undefined;
    sum += found;
  }
  return sum;
}

function differencesIn(before: FolderState, after: FolderState, walks: Walks): number | undefined {
  if (before.head !== after.head || before.kind !== after.kind) return undefined;
  if (after.kind === "files" && before.stamps === after.stamps) return after.stamps === undefined ? undefined : 0;
  const [earlier, later] = [before, after].map(
    ({ files, stamps }) => (files && new Map(Object.entries(files))) ?? walks.find(stamps),
  );
  // A path in one state only has become clean or dirty, or is new or gone.
  return earlier && later && countDifferences(earlier, later);
}
