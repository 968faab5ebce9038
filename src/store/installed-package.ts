import { createRequire } from "node:module";
import { cacheFolder } from "../config/cache-folder.ts";
import { PackageCache } from "../packages/package-cache.ts";
import type { Pinned } from "../packages/pinned.ts";

/** Finds packages of storage engines beside this program or in the cache folder, and installs them there. */

const require: NodeJS.Require = createRequire(import.meta.url);

/** Throws if the package is not installed. */
export function loadPackage(pinned: Pinned): unknown {
  const load: (file: string) => unknown = require;
  const cached = isBeside(pinned) ? undefined : packageCache().findEntry(pinned);
  return load(cached ?? pinned.name);
}

export function hasPackage(pinned: Pinned): boolean {
  return isBeside(pinned) || packageCache().findEntry(pinned) !== undefined;
}

/** Throws `InstallError`. */
export async function installPackage(pinned: Pinned): Promise<void> {
  await packageCache().install(pinned);
}

function isBeside({ name }: Pinned): boolean {
  try {
    return require.resolve(name) !== "";
  } catch {
    return false;
  }
}

function packageCache(): PackageCache {
  return new PackageCache({ cacheFolder: cacheFolder(process.env), environment: process.env });
}
