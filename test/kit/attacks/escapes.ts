import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Attacks on the folders that sessions are confined to, for tests of every layer: what a caller names, and where. Each attack
 * is made of real files and links.
 */

export interface Place {
  /** Sessions may be here. */
  readonly allowed: string;
  /** Beside it: sessions may not be here. */
  readonly outside: string;
}

export interface Escape {
  readonly how: string;
  /** Creates the files of the attack; returns the folder that a caller would name. It exists, and is outside. */
  readonly folder: (place: Place) => string;
}

function link(path: string, target: string): string {
  symlinkSync(target, path, "junction");
  return path;
}

function made(folder: string): string {
  mkdirSync(folder, { recursive: true });
  return folder;
}

export const ESCAPES: readonly Escape[] = [
  { how: "a folder beside it", folder: ({ outside }) => outside },
  { how: "the folder above it", folder: ({ allowed }) => join(allowed, "..") },
  { how: "the root of the file system", folder: () => "/" },
  {
    how: "dots that climb out of it",
    folder: ({ allowed, outside }) => `${allowed}/../${outside.split(/[\\/]/).at(-1)!}`,
  },
  { how: "dots behind dots", folder: ({ allowed }) => `${made(join(allowed, "a"))}/../..` },
  { how: "a name with the same beginning", folder: ({ allowed }) => made(`${allowed}-b`) },
  { how: "a link in it that leads out", folder: ({ allowed, outside }) => link(join(allowed, "out"), outside) },
  {
    how: "a folder behind such a link",
    folder: ({ allowed, outside }) => {
      made(join(outside, "deep"));
      return join(link(join(allowed, "out-deep"), outside), "deep");
    },
  },
  {
    how: "a link to a link that leads out",
    folder: ({ allowed, outside }) => link(join(allowed, "second"), link(join(allowed, "first"), outside)),
  },
];

/** What a file in the folder of an escape is called; it is an image, and nothing for a log to be written into. */
export function plant(folder: string): string {
  const file = join(folder, "planted.png");
  writeFileSync(file, Buffer.from(PNG, "base64"));
  return file;
}

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export interface Road {
  readonly argument: string;
  readonly tool: string;
  /** The arguments of the call that names the folder, or a file in it, for a session that is itself inside. */
  readonly args: (folder: string, place: Place) => Record<string, unknown>;
}

const begin = { prompt: "x" };

/** Where a caller can name a folder, or a file in it. */
export const ROADS: readonly Road[] = [
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
