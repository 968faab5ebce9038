import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { realpath } from "../security/files/limited.ts";
import { isExecutable, programFolders } from "../security/find-program.ts";
import { binaryPackage, SDK, SDK_VERSION, type Pinned } from "../packages/pinned.ts";
import { findInstalledSdk, readPackageVersion } from "./sdk.ts";

/** Lists the places of Claude Code on this machine. Starts nothing. */

/**
 * Returns the Claude Codes of the pinned version that npm has installed beside the Agent SDK or this program: none if left out
 * or unsupported on this platform, two if npm installed a package for each C library.
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
  // Otherwise a report looks up names in the network.
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

/** Places of the user's own Claude Code, in search order: `PATH`, then the places of its installers. */
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
  // Native installer, its predecessor, npm (global folder), Homebrew.
  const native = [join(home, ".local", "bin", NAME), join(home, ".claude", "local", NAME)];
  if (process.platform === "win32") {
    const roaming = environment["APPDATA"] ?? join(home, "AppData", "Roaming");
    return [...native, ...[prefix ?? join(roaming, "npm")].map((folder) => join(folder, "node_modules", ofPackage))];
  }
  const brew = process.platform === "darwin" ? ["/opt/homebrew"] : ["/home/linuxbrew/.linuxbrew"];
  const folders = [...prefixes, join(home, ".npm-global"), "/usr/local", ...brew];
  return [...native, ...folders.map((folder) => join(folder, "bin", NAME))];
}

/** Returns the executable files, each under its first name. */
export async function distinctExecutables(files: readonly string[]): Promise<string[]> {
  const found = new Map<string, string>();
  for (const file of files) {
    if (!(await isExecutable(file))) continue;
    const real = await realpath(file);
    if (!found.has(real)) found.set(real, file);
  }
  return [...found.values()];
}
