// Packs the package as published, for scripts that install the package.
import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** Packs this clone into `folder`. Returns the path of the file. */
export function packInto(folder) {
  const words = ["pack", "--json", "--pack-destination", folder];
  const out = execFileSync("npm", words, { cwd: join(import.meta.dirname, ".."), encoding: "utf8" });
  // Skips the output of the build before the JSON.
  return join(folder, JSON.parse(out.slice(out.indexOf("[\n")))[0].filename);
}
