import { readFileSync } from "node:fs";

/** Name and version as package.json states them, two folders above this file both in src/ and in dist/. */
export function readPackage(): { name: string; version: string } {
  const read: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return { name: textOf(read, "name"), version: textOf(read, "version") };
}

/** By hand: `--version` shall not load zod for it. */
function textOf(read: unknown, key: string): string {
  const value: unknown = typeof read === "object" && read !== null ? Reflect.get(read, key) : undefined;
  if (typeof value !== "string") throw new Error(`package.json has no ${key}`);
  return value;
}
