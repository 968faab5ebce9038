import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { binaryPackage, DRIVER_PACKAGE, SDK, SDK_PACKAGE, SDK_VERSION } from "../../../src/packages/pinned.ts";
import { Registry } from "./registry.ts";

const TARGET = `${process.platform}-${process.arch}`;
/** Package with the Claude Code of `TARGET`, this machine. */
export const BINARY = `${SDK}-${TARGET}`;
const BALLAST = 2_000_000;

/**
 * Starts a registry with this package as `npm pack` makes it, its dependencies, the Agent SDK, the store's driver, and the
 * stand-in for Claude Code in place of the binary. Integrity values in the package are replaced, because repacked packages have
 * others.
 */
export async function publishAll(folder: string): Promise<Registry> {
  const registry = await Registry.start();
  for (const dependency of dependencies()) registry.publish(dependency);
  const own = packed(folder);
  const dist = join(own, "dist");
  for (const { integrity, name } of [SDK_PACKAGE, DRIVER_PACKAGE, ...(DRIVER_PACKAGE.dependencies ?? [])]) {
    replace(dist, integrity, registry.publish(join("node_modules", name)).integrity);
  }
  const { bytes = 0, integrity = "" } = binaryPackage(TARGET) ?? {};
  replace(dist, integrity, registry.publish(standInPackage(folder)).integrity);
  replace(dist, new RegExp(String(bytes).replace(/\B(?=(\d{3})+$)/g, "_?")), String(BALLAST));
  registry.publish(own);
  return registry;
}

/** Returns the folders of all packages that `npm` installs with this package. */
function dependencies(): string[] {
  const lines = execFileSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], { encoding: "utf8" })
    .trim()
    .split("\n");
  return lines.slice(1);
}

/** Packs this package with `npm pack` and unpacks the result; returns the folder. */
function packed(folder: string): string {
  const place = mkdtempSync(join(folder, "packed-"));
  execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", place], { stdio: "ignore" });
  const [file = ""] = readdirSync(place);
  execFileSync("tar", ["-xzf", join(place, file), "-C", place]);
  return join(place, "package");
}

function standInPackage(folder: string): string {
  const place = mkdtempSync(join(folder, "stand-in-"));
  writeFileSync(join(place, "package.json"), JSON.stringify({ name: BINARY, version: SDK_VERSION }));
  const script = `#!/bin/sh\nexec ${process.execPath} ${resolve("test/kit/stand-in/claude.mjs")} "$@"\n`;
  writeFileSync(join(place, "claude"), script, { mode: 0o755 });
  writeFileSync(join(place, "ballast"), Buffer.alloc(BALLAST));
  return place;
}

/** Replaces `before` in all files of the program. */
function replace(dist: string, before: RegExp | string, now: string): void {
  const files = readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter(({ name }) => name.endsWith(".js"))
    .map(({ name, parentPath }) => join(parentPath, name));
  const changed = files.filter((file) => {
    const text = readFileSync(file, "utf8");
    const other = text.replace(before, now);
    if (other !== text) writeFileSync(file, other);
    return other !== text;
  });
  if (changed.length === 0) throw new Error(`no file of ${dist} has ${String(before)}`);
}
