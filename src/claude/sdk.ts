import type * as AgentSdk from "@anthropic-ai/claude-agent-sdk";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { InstallError } from "../packages/install-faults.ts";
import type { PackageCache } from "../packages/package-cache.ts";
import { SDK, SDK_PACKAGE, SDK_VERSION } from "../packages/pinned.ts";

/**
 * Loads the Agent SDK, from beside this program if installed there, otherwise from the cache folder. The only place that does.
 */

export type Sdk = Pick<typeof AgentSdk, "prewarm" | "query">;

const require: NodeJS.Require = createRequire(import.meta.url);
/** `require` also loads modules, from any folder. */
const load: (file: string) => Sdk = require;

let beside: string | undefined;

/**
 * Returns the SDK in the pinned version that npm has installed for this program. Cached, because a daemon's package may vanish.
 */
export function findInstalledSdk(): string | undefined {
  beside ??= findBeside();
  return beside;
}

function findBeside(): string | undefined {
  try {
    const file = require.resolve(SDK);
    return readPackageVersion(dirname(file)) === SDK_VERSION ? file : undefined;
  } catch {
    return undefined;
  }
}

export function readPackageVersion(folder: string): string | undefined {
  const parse: (text: string) => { readonly version?: string } = JSON.parse;
  return parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}

export function sdkFile(packages: Pick<PackageCache, "findEntry">): string | undefined {
  return findInstalledSdk() ?? packages.findEntry(SDK_PACKAGE);
}

/** Loads the SDK; its file is not needed afterwards. Throws `InstallError` if the SDK is not installed. */
export function loadSdk(packages: Pick<PackageCache, "findEntry" | "folder">): Sdk {
  const file = sdkFile(packages);
  if (file === undefined) throw new InstallError(SDK_PACKAGE, packages.folder, GONE);
  return load(file);
}

const GONE = { code: "EUNKNOWN", text: "its files are gone from the cache folder" };
