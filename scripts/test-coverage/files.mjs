// The files of src and a digest of their content: records of other sources are ignored.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

export function filesIn(root, folder, ending = ".ts") {
  return readdirSync(join(root, folder), { recursive: true })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .toSorted();
}

export function digestOfSources(root) {
  const digest = createHash("sha256");
  for (const file of filesIn(root, "src"))
    digest
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update("\0");
  return digest.digest("hex");
}
