import { readFileSync } from "node:fs";

/** Name and version as package.json states them, two folders above this file both in src/ and in dist/. */
export function readPackage(): { name: string; version: string } {
  const read: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return { name: textOf(read, "name"), version: textOf(read, "version") };
}

/** What the build has written beside its files: the same for the same files. "" for the sources. */
export function buildId(): string {
  try {
    return readFileSync(new URL("../build-id.txt", import.meta.url), "utf8");
  } catch {
    return "";
  }
}

/** By hand: `--version` shall not load zod for it. */
function textOf(read: unknown, key: string): string {
  const value: unknown = typeof read === "object" && read !== null ? Reflect.get(read, key) : undefined;
  if (typeof value !== "string") throw new Error(`package.json has no ${key}`);
  return value;
}
