/**
 * Counts starts of the real Claude Code by tests: `--claude-path` names a wrapper, which notes each start and becomes the
 * binary. Does not count the demo, which chooses its own Claude Code.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readArguments } from "./arguments.mjs";

const USAGE = `Usage: npm run test:starts [-- --project NAME ... FILE ...]

Runs the tests (default: the tests of npm test) and prints the number of starts of the real Claude Code, without the demo.`;

const { positionals, values } = readArguments(USAGE, {
  options: { project: { type: "string", multiple: true } },
  allowPositionals: true,
});

const require = createRequire(import.meta.url);
const sdk = `@anthropic-ai/claude-agent-sdk-${process.platform}-${process.arch}`;
const claude = join(dirname(require.resolve(`${sdk}/package.json`)), "claude");
const folder = mkdtempSync(join(tmpdir(), "ccm-starts-"));
const [starts, wrapper] = [join(folder, "starts"), join(folder, "claude")];
writeFileSync(starts, "");
writeFileSync(wrapper, `#!/bin/sh\necho start >> '${starts}'\nexec '${claude}' "$@"\n`, { mode: 0o755 });

const named = values.project ?? (positionals.length > 0 ? [] : ["unit", "server", "acceptance", "browser"]);
const projects = named.flatMap((name) => ["--project", name]);
const env = { ...process.env, REAL_CLAUDE: wrapper };
const { status } = spawnSync("npx", ["vitest", "run", ...projects, ...positionals], { stdio: "inherit", env });
console.log(`starts of the real Claude Code: ${readFileSync(starts, "utf8").split("start").length - 1}`);
rmSync(folder, { recursive: true });
process.exit(status ?? 1);
