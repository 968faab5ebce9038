import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Attacks on the folders that sessions are confined to, for tests of every layer. Each attack is made of real files and links.
 */

export interface AttackFolders {
  /** Folder that sessions may use. */
  readonly allowed: string;
  /** Folder beside `allowed` that sessions may not use. */
  readonly outside: string;
}

export interface Escape {
  readonly how: string;
  /** Creates the files of the attack; returns the existing folder outside `allowed` that a caller would name. */
  readonly folder: (place: AttackFolders) => string;
}

function link(path: string, target: string): string {
  symlinkSync(target, path, "junction");
  return path;
}

function makeFolder(folder: string): string {
  mkdirSync(folder, { recursive: true });
  return folder;
}

export const ESCAPES: readonly Escape[] = [
  { how: "a folder beside the allowed folder", folder: ({ outside }) => outside },
  { how: "the folder above the allowed folder", folder: ({ allowed }) => join(allowed, "..") },
  { how: "the root of the file system", folder: () => "/" },
  {
    how: "dots that climb out of the allowed folder",
    folder: ({ allowed, outside }) => `${allowed}/../${outside.split(/[\\/]/).at(-1)!}`,
  },
  { how: "dots behind dots", folder: ({ allowed }) => `${makeFolder(join(allowed, "a"))}/../..` },
  { how: "a name with the same beginning", folder: ({ allowed }) => makeFolder(`${allowed}-b`) },
  { how: "a link that leads out", folder: ({ allowed, outside }) => link(join(allowed, "out"), outside) },
  {
    how: "a folder behind a link that leads out",
    folder: ({ allowed, outside }) => {
      makeFolder(join(outside, "deep"));
      return join(link(join(allowed, "out-deep"), outside), "deep");
    },
  },
  {
    how: "a link to a link that leads out",
    folder: ({ allowed, outside }) => link(join(allowed, "second"), link(join(allowed, "first"), outside)),
  },
];

/** Creates an image in the folder of an escape; no log is written into an image. */
export function plantImage(folder: string): string {
  const file = join(folder, "planted.png");
  writeFileSync(file, Buffer.from(PNG, "base64"));
  return file;
}

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export interface PathArgument {
  readonly argument: string;
  readonly tool: string;
  /** Arguments that name `folder`, or a file in `folder`, for a session whose `cwd` is allowed. */
  readonly args: (folder: string, place: AttackFolders) => Record<string, unknown>;
}

const begin = { prompt: "x" };

/** Arguments with which a caller can name a folder or a file in a folder. */
export const PATH_ARGUMENTS: readonly PathArgument[] = [
  { argument: "cwd", tool: "claude_code", args: (cwd) => ({ ...begin, cwd }) },
  {
    argument: "additionalDirectories[0]",
    tool: "claude_code",
    args: (folder, { allowed: cwd }) => ({ ...begin, cwd, additionalDirectories: [folder] }),
  },
  {
    argument: "debugFile",
    tool: "claude_code",
    args: (folder, { allowed: cwd }) => ({ ...begin, cwd, advanced: { debugFile: `${folder}/debug.log` } }),
  },
  {
    argument: "attachments[0].path",
    tool: "claude_code",
    args: (folder, { allowed: cwd }) => ({ ...begin, cwd, attachments: [{ path: `${folder}/planted.png` }] }),
  },
];
