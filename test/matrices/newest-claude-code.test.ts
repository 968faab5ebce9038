import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { describeWakes } from "../kit/clients/wakes.ts";
import { isFull } from "../kit/faults/figures.ts";

/**
 * The newest Claude Code of npm, which may be newer than the pinned one, as a client. Only with --full: a release of that day
 * must not end the proof of a change that it has nothing to do with.
 */

const PACKAGE = "@anthropic-ai/claude-code";
/** Time limit of the installation of 400 MB, ms. */
const INSTALL_MS = 600_000;
let claude = "";

/** Installs the newest version once for all runs on this machine. */
function install(): string {
  const npm = (...words: string[]) => execFileSync("npm", words, { encoding: "utf8" }).trim();
  const version = npm("view", PACKAGE, "version");
  const folder = join(tmpdir(), `ccm-claude-code-${version}`);
  const file = join(folder, "node_modules", ".bin", "claude");
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  npm("install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel", "error", `${PACKAGE}@${version}`);
  return file;
}

beforeAll(() => {
  if (isFull) claude = install();
}, INSTALL_MS);

describe.runIf(isFull)("the newest Claude Code", () => {
  it("the newest Claude Code of npm starts", () => {
    const version = execFileSync(claude, ["--version"], { encoding: "utf8" });
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
  });

  describeWakes(() => claude);
});
