import { execFile } from "node:child_process";

import { expect, it } from "vitest";

/** Scripts refuse invalid arguments before any action, with the problem and their usage. */

const SCRIPTS = [
  "bench/run.mjs",
  "scripts/build.mjs",
  "scripts/catalogues.mjs",
  "scripts/check-house.mjs",
  "scripts/generate-docs.mjs",
  "scripts/release.mjs",
  "scripts/test-all.mjs",
  "scripts/try-clients.mjs",
  "scripts/try-readme.mjs",
];

it.each(SCRIPTS)("%s refuses an unknown option, with its usage", async (script) => {
  const usage = await run(script, "--help");
  expect(usage).toMatchObject({ code: 0, stderr: "" });
  expect(usage.stdout).toMatch(/^Usage: n/);
  const refused = await run(script, "--unheard-of");
  expect(refused).toEqual({ code: 1, stdout: "", stderr: `Unknown option '--unheard-of'.\n\n${usage.stdout}` });
});

it.each([
  ["scripts/check-house.mjs", "none", 'There is no house-rules.json in "none".'],
  ["scripts/try-clients.mjs", "none", 'There is no program "none".'],
  ["bench/run.mjs", "none", 'There is no benchmark "none": --list names them.'],
])("%s refuses %s: %s", async (script, ...rest) => {
  const problem = rest.pop() ?? "";
  const { code, stderr } = await run(script, ...rest);
  expect(code).toBe(1);
  expect(stderr.split("\n")[0]).toBe(problem);
});

async function run(script: string, ...args: string[]) {
  return new Promise<{ code: unknown; stdout: string; stderr: string }>((done) => {
    execFile(process.execPath, [script, ...args], (error, stdout, stderr) => {
      done({ code: error?.code ?? 0, stdout, stderr });
    });
  });
}
