import { readFileSync } from "node:fs";

import { expect, it } from "vitest";

import { bundledClaude } from "../../src/claude/binary.ts";
import { FAMILIES_OF_THE_OUTER_SESSION, OF_THE_OUTER_SESSION } from "../../src/claude/environment.ts";

it("variables of an outer session are named as Claude Code's binary has them", () => {
  const path = bundledClaude();
  if (path === undefined) throw new Error("no binary: npm ci installs it");
  const binary = readFileSync(path);
  const names = [...OF_THE_OUTER_SESSION, ...FAMILIES_OF_THE_OUTER_SESSION];
  expect(names.filter((name) => !binary.includes(name))).toEqual([]);
});
