import { readFileSync, realpathSync } from "node:fs";
import { join, posix, resolve, win32 } from "node:path";
import { z } from "zod";
import { PRODUCT } from "../domain/names.ts";
import { programFolders } from "../security/find-program.ts";

/** Command for a client to start this server. */
export interface Invocation {
  readonly command: string;
  /** Ends with the arguments of the server. */
  readonly args: readonly string[];
}

/** Start of this process: program, script and folder. */
export interface Running {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execPath: string;
  /** Script as named at the start. A link on PATH survives an upgrade, its target may not. */
  readonly script: string;
  readonly cwd: string;
  /** True for a file shared with others: names are used instead of paths of this machine, if possible. */
  readonly shared: boolean;
}

/** Folder of a package runner, which may empty it at any time. */
const RUNNER = /^(.*[\\/]_npx[\\/][0-9a-f]+)[\\/]node_modules[\\/]/;

/**
 * Returns `npx -y SPEC` if started by npx, otherwise `node` and the script by absolute paths, because desktop applications lack
 * the PATH of a shell. In a shared file, the name alone if it is on PATH.
 */
export async function invocationOf(running: Running, serverArgs: readonly string[]): Promise<Invocation> {
  const { platform, script, shared } = running;
  const folder = RUNNER.exec(script)?.[1];
  // npm's programs are scripts on Windows, and many clients can start those only by `cmd`.
  const wrapped = (command: string, ...args: string[]): Invocation =>
    platform === "win32"
      ? { command: "cmd", args: ["/c", command, ...args, ...serverArgs] }
      : { command, args: [...args, ...serverArgs] };
  if (folder !== undefined) return wrapped("npx", "-y", findSpec(folder, running.cwd));
  if (shared && (await isOnPath(running))) return wrapped(PRODUCT);
  return {
    command: await findNode(running),
    args: [(platform === "win32" ? win32 : posix).resolve(running.cwd, script), ...serverArgs],
  };
}

/** Command of the published package, as in the documentation. */
export const PUBLISHED: Invocation = { command: "npx", args: ["-y", PRODUCT] };

/** Command of an installed package. */
export const INSTALLED: Invocation = { command: PRODUCT, args: [] };

export function isNpx({ args, command }: Invocation): boolean {
  return command === "npx" || args[1] === "npx";
}

/** True if the command has no path of this machine, and so works for others. */
export function isPortable({ args, command }: Invocation): boolean {
  return ![command, args[0] ?? ""].some((word) => posix.isAbsolute(word) || win32.isAbsolute(word));
}

/** Returns the package given to `npx`, with version or tag, according to a file in `folder`. */
function findSpec(folder: string, cwd: string): string {
  const spec = readSpec(folder);
  if (spec === undefined) return PRODUCT;
  const file = resolve(cwd, spec);
  return /^\.{0,2}[\\/]|\.tgz$/.test(spec) && realOf(file) !== undefined ? file : spec;
}

/** Accepts exactly one package, because the entry can name only one. */
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
  return own !== undefined && (await programCandidates(running, PRODUCT)).some((file) => realOf(file) === own);
}

/** Prefers a link of a version manager (such as Homebrew's), because links survive upgrades of Node. */
async function findNode(running: Running): Promise<string> {
  const { execPath } = running;
  const own = realOf(execPath);
  return (await programCandidates(running, "node")).find((file) => realOf(file) === own) ?? execPath;
}

async function programCandidates({ env, platform }: Running, name: string): Promise<string[]> {
  const file = platform === "win32" ? `${name}.exe` : name;
  return (await programFolders(env["PATH"] ?? "")).map((folder) => join(folder, file));
}

/** Resolves links; `undefined` if nothing exists there. */
export function realOf(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}
