import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { realpath } from "../security/files/limited.ts";
import { isExecutable, programFolders } from "../security/find-program.ts";
import { binaryPackage, SDK, SDK_VERSION, type Pinned } from "../packages/pinned.ts";
import { findInstalledSdk, readPackageVersion } from "./sdk.ts";

/** Finds Claude Code on this machine. Starts nothing. */

/**
 * Returns each Claude Code of the pinned version that npm has installed beside the Agent SDK or this program: none if optional
 * packages were left out or the platform is unsupported, two if npm installed both the glibc and the musl package.
 */
export function bundledClaudes(): string[] {
  const beside = findInstalledSdk();
  const places = [import.meta.url, ...(beside === undefined ? [] : [beside])].map((file) => createRequire(file));
  return [PLATFORM, `${PLATFORM}-musl`]
    .map((target) => places.map((require) => resolveFolder(require, `${SDK}-${target}`)).find((found) => found))
    .flatMap((folder) => (folder === undefined ? [] : [join(folder, NAME)]))
    .filter((file) => existsSync(file));
}

const NAME = process.platform === "win32" ? "claude.exe" : "claude";
const PLATFORM = `${process.platform}-${process.arch}`;

/** Package of Claude Code for this machine; `undefined` if the Agent SDK has none. */
export function platformPackage(): Pinned | undefined {
  const isMusl = process.platform === "linux" && !hasGlibc();
  return binaryPackage(isMusl ? `${PLATFORM}-musl` : PLATFORM);
}

let glibc: boolean | undefined;

function hasGlibc(): boolean {
  if (glibc !== undefined) return glibc;
  // Otherwise `getReport` looks up the host names of open connections.
  Object.assign(process.report, { excludeNetwork: true });
  const report: { readonly header?: { readonly glibcVersionRuntime?: string } } = process.report.getReport();
  glibc = report.header?.glibcVersionRuntime !== undefined;
  return glibc;
}

function resolveFolder(require: NodeJS.Require, name: string): string | undefined {
  try {
    const folder = dirname(require.resolve(`${name}/package.json`));
    return readPackageVersion(folder) === SDK_VERSION ? folder : undefined;
  } catch {
    return undefined;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Lists files that may be the user's own Claude Code, in search order: in `PATH`, then where installers put it. */
export async function userClaudeFiles(
  environment: Environment,
  home = homeOf(environment),
): Promise<{ path: string[]; usual: string[] }> {
  const variable = environment["PATH"] ?? environment["Path"] ?? "";
  const folders = await programFolders(variable);
  return { path: folders.map((folder) => join(folder, NAME)), usual: installerFiles(environment, home) };
}

function homeOf(environment: Environment): string {
  return environment["HOME"] ?? environment["USERPROFILE"] ?? homedir();
}

function installerFiles(environment: Environment, home: string): string[] {
  const ofPackage = join("@anthropic-ai", "claude-code", "bin", "claude.exe");
  const prefix = environment["NPM_CONFIG_PREFIX"] ?? environment["npm_config_prefix"];
  const prefixes = [...(prefix === undefined || prefix === "" ? [] : [prefix]), dirname(dirname(process.execPath))];
  // In this order: native installer, its predecessor, npm (global folder), Homebrew.
  const native = [join(home, ".local", "bin", NAME), join(home, ".claude", "local", NAME)];
  if (process.platform === "win32") {
    const roaming = environment["APPDATA"] ?? join(home, "AppData", "Roaming");
    return [...native, ...[prefix ?? join(roaming, "npm")].map((folder) => join(folder, "node_modules", ofPackage))];
  }
  const brew = process.platform === "darwin" ? ["/opt/homebrew"] : ["/home/linuxbrew/.linuxbrew"];
  const folders = [...prefixes, join(home, ".npm-global"), "/usr/local", ...brew];
  return [...native, ...folders.map((folder) => join(folder, "bin", NAME))];
}

/** Returns the executables in `files`. If several paths lead to one file, returns the first path. */
export async function distinctExecutables(files: readonly string[]): Promise<string[]> {
  const found = new Map<string, string>();
  for (const file of files) {
    if (!(await isExecutable(file))) continue;
    const real = await realpath(file);
    if (!found.has(real)) found.set(real, file);
  }
  return [...found.values()];
}
