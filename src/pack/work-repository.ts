import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OwnGit } from "../security/git/own-repository.ts";

/** Parts of a packed repository that packing and unpacking share. */

/** Commits in the bundle: `HEAD`; the index, and the files of the folder, both on top of `HEAD`. */
export const REFS = { commit: "refs/session/commit", index: "refs/session/index", files: "refs/session/files" };

/** Addresses that name no program and hold no password. */
export const PLAIN_URL = /^(?:https?|ssh):\/\/(?:git@)?[\w.-]+(?::\d+)?\/[^\s\\]+$|^git@[\w.-]+:[^\s\\-][^\s\\]*$/;

/** Attributes under which git writes and reads every file byte by byte. */
const RAW_ATTRIBUTES = "* -text !eol -ident !filter !working-tree-encoding\n";

interface Beside {
  readonly gitDir: string;
  /** Folder of objects of another repository, which are only read. */
  readonly objects: string;
  readonly format: "sha1" | "sha256";
}

/** Creates a repository that has the objects of another and its own attributes. */
export async function createBeside(git: OwnGit, { format, gitDir, objects }: Beside): Promise<void> {
  await git(["init", "-q", "--template=", `--object-format=${format}`]);
  await mkdir(join(gitDir, "info"), { recursive: true });
  await writeFile(join(gitDir, "info", "attributes"), RAW_ATTRIBUTES);
  await writeFile(join(gitDir, "objects", "info", "alternates"), `${objects}\n`);
}

/** Splits a list that git ends with NUL. A name has a character for each byte, because names need not be UTF-8. */
export function namesIn(list: Buffer): string[] {
  return list
    .toString("latin1")
    .split("\0")
    .filter((name) => name !== "");
}

/** Returns names for the stdin of git. */
export function listOf(names: readonly string[]): Buffer {
  return Buffer.from(names.map((name) => `${name}\0`).join(""), "latin1");
}

/** Returns the name as text to show and to open. */
export const shown = (name: string): string => Buffer.from(name, "latin1").toString();
