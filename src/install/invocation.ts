import { readFileSync, realpathSync } from "node:fs";
import { join, posix, resolve, win32 } from "node:path";
import { z } from "zod";
import { PRODUCT } from "../domain/names.ts";
import { programFolders } from "../security/programs.ts";

/** How a client starts this server. */
export interface Invocation {
  readonly command: string;
  /** Those of the server at the end. */
  readonly args: readonly string[];
}

/** This process: what it was started as. */
export interface Running {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execPath: string;
  /** The script as it was named: a link on PATH survives an upgrade, and what it leads to may not. */
  readonly script: string;
  readonly cwd: string;
  /** For a file that others share: no path of this machine where a name will do. */
  readonly shared: boolean;
}

/** A package runner's own folder, which it empties when it wants. */
const RUNNER = /^(.*[\\/]_npx[\\/][0-9a-f]+)[\\/]node_modules[\\/]/;

/**
 * `npx -y SPEC` if that has started us; else `node` and our script by their absolute paths, which needs no PATH of a shell:
 * applications of the desktop have none. In a file that is shared, the name alone where it is on PATH.
 */
export async function invocationOf(running: Running, serverArgs: readonly string[]): Promise<Invocation> {
  const { platform, script, shared } = running;
  const folder = RUNNER.exec(script)?.[1];
  // cmd, because npm's programs are scripts on Windows, which many clients cannot start.
  const wrapped = (command: string, ...args: string[]): Invocation =>
    platform === "win32"
      ? { command: "cmd", args: ["/c", command, ...args, ...serverArgs] }
      : { command, args: [...args, ...serverArgs] };
  if (folder !== undefined) return wrapped("npx", "-y", specOf(folder, running.cwd));
  if (shared && (await isOnPath(running))) return wrapped(PRODUCT);
  return {
    command: await nodeOf(running),
    args: [(platform === "win32" ? win32 : posix).resolve(running.cwd, script), ...serverArgs],
  };
}

/** The entry of a published package, as the documentation shows it. */
export const PUBLISHED: Invocation = { command: "npx", args: ["-y", PRODUCT] };

/** Entry of an installed package. */
export const INSTALLED: Invocation = { command: PRODUCT, args: [] };

export function isNpx({ args, command }: Invocation): boolean {
  return command === "npx" || args[1] === "npx";
}

/** Whether others can start it: it names no path of this machine. */
export function isPortable({ args, command }: Invocation): boolean {
  return ![command, args[0] ?? ""].some((word) => posix.isAbsolute(word) || win32.isAbsolute(word));
}

/** The package that `npx` was given, with version or tag; a file beside the package says so. */
function specOf(folder: string, cwd: string): string {
  const spec = readSpec(folder);
  if (spec === undefined) return PRODUCT;
  const file = resolve(cwd, spec);
  return /^\.{0,2}[\\/]|\.tgz$/.test(spec) && realOf(file) !== undefined ? file : spec;
}

/** More than one package is more than this entry can say. */
const Runner = z
  .object({ _npx: z.object({ packages: z.tuple([z.string()]) }) })
  .transform(({ _npx: { packages } }) => packages[0]);

function readSpec(folder: string): string | undefined {
  try {
    return Runner.parse(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
  } catch {
    return undefined;
  }
}

async function isOnPath(running: Running): Promise<boolean> {
  const own = realOf(running.script);
  return own !== undefined && (await onPath(running, PRODUCT)).some((file) => realOf(file) === own);
}

/** A version manager's link, such as Homebrew's, stays when Node is upgraded. */
async function nodeOf(running: Running): Promise<string> {
  const { execPath } = running;
  const own = realOf(execPath);
  return (await onPath(running, "node")).find((file) => realOf(file) === own) ?? execPath;
}

async function onPath({ env, platform }: Running, name: string): Promise<string[]> {
  const file = platform === "win32" ? `${name}.exe` : name;
  return (await programFolders(env["PATH"] ?? "")).map((folder) => join(folder, file));
}

/** Where the links of a path lead; undefined where that is nowhere. */
export function realOf(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}
