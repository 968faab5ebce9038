import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

import { afterEach, beforeEach, expect, it } from "vitest";

import { findProgram, isExecutable } from "../../src/security/programs.ts";

let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), "ccm-programs-"))));
afterEach(() => rmSync(root, { recursive: true }));

/** An executable file with the name "tool". */
function toolIn(folder: string, mode = 0o755): string {
  const file = join(root, folder, "tool");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "", { mode });
  return file;
}

it("a program is found in the first absolute folder of PATH that is no repository's and has a file that can be executed", () => {
  const file = toolIn("machine");
  const ofRepository = dirname(toolIn("node_modules/.bin"));
  const notExecutable = dirname(toolIn("text", 0o644));
  const withFolder = dirname(dirname(toolIn("folder/tool")));
  const passedOver = [
    relative(process.cwd(), dirname(file)),
    ofRepository,
    `${ofRepository}/`,
    notExecutable,
    withFolder,
  ];
  expect(findProgram("tool", { PATH: passedOver.join(":") })).toBeUndefined();
  const more = dirname(toolIn("more"));
  expect(findProgram("tool", { PATH: [...passedOver, dirname(file), more].join(":") })).toBe(file);
});

it("a path is no program where its folder cannot be looked into", () => {
  symlinkSync("loop", join(root, "loop"));
  expect(isExecutable(join(root, "loop", "tool"))).toBe(false);
});
