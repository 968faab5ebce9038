import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Builds the server from a copy of its source with an additional approver, as CONTRIBUTING.md describes. */

const ROOT = join(import.meta.dirname, "../../..");
const PARTS = ["src", "console", "scripts", "package.json", "house-rules.json", "tsconfig.base.json"];

/** Line of the table after which the new approver is added. */
const LINE = "  webhook,\n";

/** Copies `folder` of test/kit to src/approvers, and adds its entry `name` to the table of approvers. */
export function buildWith(copy: string, folder: string, name: string): void {
  for (const part of PARTS) cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const [from, to] = [join(import.meta.dirname, "..", folder), join(copy, "src", "approvers", folder)];
  mkdirSync(to);
  for (const file of readdirSync(from)) {
    const text = readFileSync(join(from, file), "utf8");
    writeFileSync(
      join(to, file),
      text.replaceAll('"../../../src/approvers/', '"../').replaceAll("../../../src/", "../../"),
    );
  }
  const table = join(copy, "src", "approvers", "approvers.ts");
  const text = readFileSync(table, "utf8");
  if (!text.includes(LINE)) throw new Error(`${table} has no line of the webhook`);
  const added = `import { ${name} } from "./${folder}/${folder}.ts";\n`;
  writeFileSync(table, added + text.replace(LINE, `${LINE}  ${name},\n`));
  run(copy, "scripts/build.mjs");
}

/** Returns stdout of `node ARGS`. Throws with stderr if the command fails. */
export function run(folder: string, ...args: string[]): string {
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
  return stdout;
}
