import type * as AgentSdk from "@anthropic-ai/claude-agent-sdk";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { InstallError } from "../packages/faults.ts";
import type { PackageCache } from "../packages/package-cache.ts";
import { SDK, SDK_PACKAGE, SDK_VERSION } from "../packages/pinned.ts";

/** The Agent SDK: beside this program where it is installed with it, else in the cache folder. All of it is loaded here. */

export type Sdk = Pick<typeof AgentSdk, "prewarm" | "query">;

const require: NodeJS.Require = createRequire(import.meta.url);
/** Modules are loaded as well, from wherever they are. */
const load: (file: string) => Sdk = require;

let beside: string | undefined;

/** That which npm has put where this program finds its packages, in the pinned version. Kept: the package of a daemon may vanish. */
export function sdkBeside(): string | undefined {
  beside ??= findBeside();
  return beside;
}

function findBeside(): string | undefined {
  try {
    const file = require.resolve(SDK);
    return versionIn(dirname(file)) === SDK_VERSION ? file : undefined;
  } catch {
    return undefined;
  }
}

/** The version of the package in this folder. */
export function versionIn(folder: string): string | undefined {
  const parse: (text: string) => { readonly version?: string } = JSON.parse;
  return parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}

export function sdkFile(packages: Pick<PackageCache, "entryOf">): string | undefined {
  return sdkBeside() ?? packages.entryOf(SDK_PACKAGE);
}

/** What has been loaded does not need its file any more. Throws InstallError where it is not installed. */
export function loadSdk(packages: Pick<PackageCache, "entryOf" | "folder">): Sdk {
  const file = sdkFile(packages);
  if (file === undefined) throw new InstallError(SDK_PACKAGE, packages.folder, GONE);
  return load(file);
}

const GONE = { code: "EUNKNOWN", text: "its files are gone from the cache folder" };
