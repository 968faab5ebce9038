import { readFileSync } from "node:fs";

/** Reads name and version from `package.json`, two folders above this file both in `src/` and in `dist/`. */
export function readPackage(): { name: string; version: string } {
  const read: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return { name: requireString(read, "name"), version: requireString(read, "version") };
}

/** Returns the id of the build, equal for equal files. "" when run from sources. */
export function buildId(): string {
  try {
    return readFileSync(new URL("../build-id.txt", import.meta.url), "utf8");
  } catch {
    return "";
  }
}

/** Reads without zod, so that `--version` starts fast. */
function requireString(read: unknown, key: string): string {
  const value: unknown = typeof read === "object" && read !== null ? Reflect.get(read, key) : undefined;
  if (typeof value !== "string") throw new Error(`package.json has no ${key}`);
  return value;
}
