import { readFileSync } from "node:fs";
import { z } from "zod";

const PackageFile = z.object({ name: z.string(), version: z.string() });

/** Name and version as package.json states them, two folders above this file both in src/ and in dist/. */
export function readPackage(): z.infer<typeof PackageFile> {
  return PackageFile.parse(JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")));
}
