import { readFileSync } from "node:fs";

/** Fields of the package. `registryName` is the name in the MCP Registry. */
interface PackageFields {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly registryName: string;
}

/** Reads `package.json`, two folders above this file both in `src/` and in `dist/`. */
export function readPackage(): PackageFields {
  const read: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const field = (key: string) => requireString(read, key);
  return {
    name: field("name"),
    version: field("version"),
    description: field("description"),
    registryName: field("mcpName"),
  };
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
