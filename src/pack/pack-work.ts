import { lstat, writeFile } from "node:fs/promises";
import { basename, join, relative, sep } from "node:path";
import { AppError } from "../domain/error.ts";
import { ownGit, type OwnGit } from "../security/git/own-repository.ts";
import {
  openRepository,
  type GitContext,
  type OpenedRepository,
  type ReadOnlyGit,
} from "../security/git/read-only-git.ts";
import { submoduleFault } from "../security/git/repository.ts";
import { GitError, unreadableText } from "../security/git/run.ts";
import { exists, realpath } from "../security/files/limited.ts";
import { readSmall } from "../security/files/plain-file.ts";
import type { Work } from "./manifest.ts";
import { createBeside, listOf, namesIn, PLAIN_URL, REFS, shown } from "./work-repository.ts";

/**
 * Packs the repository around a folder: a bundle with the history of `HEAD`, and with the files that are not committed as up to two
 * commits on top, staged files and files of the folder. Commits in place of a patch, because they keep binaries, modes and symbolic
 * links byte by byte. Both are made in a repository of this server, beside the objects of the folder's, which is only read.
 */

/** Maximum size of files that are not committed, and of lists of files, bytes. */
const MAX_FILE_BYTES = 4 * 1024 ** 3;
const MAX_LIST_BYTES = 64 * 1024 ** 2;
const LIMIT_MS = 120_000;

export interface PackedWork {
  readonly work: Work;
  /** File of the bundle. */
  readonly bundle: string;
  /** Sentences on files that are not packed. */
  readonly leftOut: readonly string[];
}

/**
 * Resolves to `undefined` if the folder is in no repository. Throws INVALID_ARGUMENT for a repository that cannot be read as a whole.
 */
export async function packWork(place: GitContext, scratch: string): Promise<PackedWork | undefined> {
  if (!(await exists(place.cwd))) throw unpackable(`${place.cwd} is gone.`);
  const opened = await openRepository({ ...place, mostBytes: MAX_LIST_BYTES }, LIMIT_MS);
  if (opened === undefined) return undefined;
  if (typeof opened === "string") throw unpackable(opened);
  try {
    return await packOpened(place, opened, scratch);
  } catch (error) {
    throw error instanceof GitError ? unpackable(unreadableText(error)) : error;
  }
}

function unpackable(why: string): AppError {
  return new AppError(
    "INVALID_ARGUMENT",
    `The files of the folder cannot be packed. ${why} Leave them out with --no-files.`,
  );
}

async function packOpened(place: GitContext, opened: OpenedRepository, scratch: string): Promise<PackedWork> {
  const { repository } = opened;
  const { top } = repository;
  const at = { ...place, cwd: top, mostBytes: MAX_LIST_BYTES };
  // Lists are of the whole repository, not of the session's folder in it.
  const whole = await openRepository(at, LIMIT_MS);
  if (typeof whole !== "object") throw unpackable(whole ?? "");
  const [commit, branch, objectFormat, shallow] = await Promise.all([
    readLine(whole.git, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
    readLine(whole.git, "symbolic-ref", "--quiet", "--short", "HEAD"),
    readLine(whole.git, "rev-parse", "--show-object-format"),
    readSmall(join(repository.commonDir, "shallow"), MAX_LIST_BYTES).catch(() => ""),
  ]);
  const format = objectFormat === "sha256" ? "sha256" : "sha1";
  const gitDir = join(scratch, "repository");
  const git = await ownGit({ ...place, gitDir, workTree: top });
  if (!git) throw unpackable("No git was found.");
  await createBeside(git, { gitDir, format, objects: join(repository.commonDir, "objects") });
  if (shallow !== "") await writeFile(join(gitDir, "shallow"), shallow);
  const tree = { allowed: place.allowed, commit, gitDir: repository.gitDir, top };
  const { hasIndex, leftOut, submodules } = await commitFiles(git, whole.git, tree);
  const bundle = join(scratch, "work.bundle");
  await git(["bundle", "create", "-q", bundle, "--all"]);
  const url = await readLine(whole.git, "config", "--get", "remote.origin.url");
  return {
    work: {
      name: basename(top),
      folder: relative(top, await realpath(place.cwd))
        .split(sep)
        .join("/"),
      format,
      ...(commit !== undefined && { commit }),
      ...(branch !== undefined && { branch }),
      ...(url !== undefined && PLAIN_URL.test(url) && { origin: url }),
      hasIndex,
      shallow: shallow.split("\n").filter((line) => line !== ""),
      submodules,
    },
    bundle,
    leftOut,
  };
}

/** `undefined` if git finds nothing. */
async function readLine(git: ReadOnlyGit, ...args: string[]): Promise<string | undefined> {
  const text = await git(...args).then(
    (found) => found.toString().trim(),
    () => "",
  );
  return text === "" ? undefined : text;
}

interface Tree {
  readonly allowed: GitContext["allowed"];
  readonly commit: string | undefined;
  /** Data of the repository that is packed. */
  readonly gitDir: string;
  readonly top: string;
}

/** Commits the index and the files, and names both and `commit` by refs. */
async function commitFiles(git: OwnGit, of: ReadOnlyGit, { allowed, commit, gitDir, top }: Tree) {
  const index = await of("ls-files", "--stage", "-z");
  const entries = namesIn(index);
  const submodules = entries.flatMap((entry) => submoduleIn(entry));
  await git(["update-index", "-z", "--index-info"], index);
  const isMerging = entries.some((entry) => /^\d+ \w+ [1-3]\t/.test(entry));
  const changed = namesIn(await of("diff-files", "--name-only", "-z", "--ignore-submodules=dirty"));
  const untracked = namesIn(await of("ls-files", "--others", "--exclude-standard", "-z"));
  const ignored = namesIn(await of("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"));
  const nested = untracked.filter((name) => name.endsWith("/"));
  const files = [...new Set([...changed, ...untracked.filter((name) => !name.endsWith("/"))])];
  const hidden = await hiddenSubmodules(submodules, top, allowed);
  const kept = files.filter((name) => !hidden.includes(name));
  await checkSize(kept, top);
  const parents = commit === undefined ? [] : ["-p", commit];
  const commitTree = async (ref: string) => {
    const tree = (await git(["write-tree", "--missing-ok"])).toString().trim();
    const made = (await git(["commit-tree", tree, ...parents, "-m", ref])).toString().trim();
    await git(["update-ref", ref, made]);
  };
  if (commit !== undefined) await git(["update-ref", REFS.commit, commit]);
  if (!isMerging) await commitTree(REFS.index);
  await git(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], listOf(kept));
  await commitTree(REFS.files);
  const leftOut = [
    ...listed("git ignores them", ignored),
    ...listed("they are repositories of their own", nested),
    ...listed(
      "only the commit of a submodule is packed, not its files: push its commits",
      submodules.map(({ commit: at, path }) => `${path} (${at.slice(0, 12)})`),
    ),
    ...listed("other machines could take their names for .git", await refusedNames(git, kept, top)),
    ...listed("git was told to overlook their changes", await overlooked(of, top)),
    ...(await underWay(gitDir, isMerging)),
  ];
  return {
    hasIndex: !isMerging,
    leftOut,
    submodules: submodules.map(({ commit: at, path }) => ({ commit: at, path: shown(path) })),
  };
}

/** Returns names of files that git has not taken, without an error, into the index. */
async function refusedNames(git: OwnGit, kept: readonly string[], top: string): Promise<string[]> {
  const taken = new Set(namesIn(await git(["ls-files", "-z"])));
  return existing(
    kept.filter((name) => !taken.has(name)),
    top,
  );
}

/** Returns files whose changes git does not see: `assume-unchanged`, and `skip-worktree` outside a sparse checkout. */
async function overlooked(of: ReadOnlyGit, top: string): Promise<string[]> {
  const flagged = namesIn(await of("ls-files", "-v", "-z")).filter((line) => /^[a-zS] /.test(line));
  return existing(
    flagged.map((line) => line.slice(2)),
    top,
  );
}

async function existing(names: readonly string[], top: string): Promise<string[]> {
  const found = names.map(async (name) =>
    lstat(join(top, shown(name))).then(
      (stats) => (stats.isDirectory() ? [] : [name]),
      () => [],
    ),
  );
  return (await Promise.all(found)).flat();
}

/** Files of git by the operation that keeps them. */
const OPERATIONS = [
  ["rebase-merge", "rebase"],
  ["rebase-apply", "rebase"],
  ["MERGE_HEAD", "merge"],
  ["CHERRY_PICK_HEAD", "cherry-pick"],
  ["REVERT_HEAD", "revert"],
] as const;

async function underWay(gitDir: string, isMerging: boolean): Promise<string[]> {
  const found = OPERATIONS.map(async ([file, name]) => ((await exists(join(gitDir, file))) ? [name] : []));
  const [name = isMerging ? "merge" : undefined] = (await Promise.all(found)).flat();
  if (name === undefined) return [];
  return [`The ${name} under way is not packed; its files are${isMerging ? ", with their conflict markers" : ""}.`];
}

/** Number of names in a sentence, and characters of each: `Manifest` bounds the sentence. */
const [MAX_LISTED, MAX_SHOWN] = [20, 500];

function listed(why: string, all: readonly string[]): string[] {
  if (all.length === 0) return [];
  const more = all.length > MAX_LISTED ? ` and ${String(all.length - MAX_LISTED)} more` : "";
  const names = all.slice(0, MAX_LISTED).map((name) => shown(name).slice(0, MAX_SHOWN));
  return [`Not packed, because ${why}: ${names.join(", ")}${more}.`];
}

function submoduleIn(entry: string): { path: string; commit: string }[] {
  const [, commit, path] = /^160000 (\w+) \d\t(.*)$/s.exec(entry) ?? [];
  return commit === undefined || path === undefined ? [] : [{ path, commit }];
}

/** Returns submodules whose `.git` names data elsewhere, so that their present commit must not be read. */
async function hiddenSubmodules(
  submodules: Work["submodules"],
  top: string,
  allowed: GitContext["allowed"],
): Promise<string[]> {
  const found = submodules.map(async ({ path }) =>
    (await submoduleFault(join(top, shown(path)), allowed)) ? [path] : [],
  );
  return (await Promise.all(found)).flat();
}

async function checkSize(files: readonly string[], top: string): Promise<void> {
  let [bytes, largest, most] = [0, "", -1];
  for (const name of files) {
    const size = await lstat(join(top, shown(name))).then(
      (found) => found.size,
      () => 0,
    );
    bytes += size;
    if (size > most) [largest, most] = [shown(name), size];
  }
  if (bytes <= MAX_FILE_BYTES) return;
  const problem = `Files that are not committed have ${String(Math.round(bytes / 1024 ** 2))} MiB, of which ${largest} has the most`;
  throw unpackable(`${problem}: have git ignore it, or commit it.`);
}
