import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

/** Runs `scripts/release.mjs` in a copy of the files, so nothing is published. */

let root: string;
const at = (...names: string[]) => join(root, ...names);
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@localhost", ...args], { cwd: root, encoding: "utf8" });

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "ccm-release-"));
  for (const path of [
    "package.json",
    "package-lock.json",
    "server.json",
    ".claude-plugin",
    "catalogues",
    "Containerfile",
  ]) {
    cpSync(path, at(path), { recursive: true });
  }
  const manifest = JSON.parse(readFileSync(at("package.json"), "utf8")) as object;
  writeFileSync(at("package.json"), JSON.stringify({ ...manifest, version: "0.1.0" }));
  changelog("## Unreleased\n\n### Added\n\n- A thing.\n\n## 0.0.9 (2026-01-01)\n\n- The first.\n");
});
afterEach(() => rmSync(root, { recursive: true }));

/** Writes `CHANGELOG.md` and commits all files. */
function changelog(text: string): void {
  writeFileSync(at("CHANGELOG.md"), `# Changelog\n\n${text}`);
  git("init", "--quiet");
  git("config", "user.name", "a");
  git("config", "user.email", "a@localhost");
  git("add", "--all");
  git("commit", "--quiet", "--message", "all: begin");
}

function release(...args: string[]) {
  const { status, stderr, stdout } = spawnSync(process.execPath, ["scripts/release.mjs", ...args, "--root", root], {
    encoding: "utf8",
  });
  return { status, stderr: stderr.trim(), stdout };
}

const versionIn = (file: string) => (JSON.parse(readFileSync(at(file), "utf8")) as { version: string }).version;

it("npm run release moves the entries, sets the version everywhere, commits and tags", () => {
  expect(release("--verify", "v0.1.0", "--owner", "me").stderr).toContain("has no entries of 0.1.0 with a date");
  expect(release("0.2.0")).toMatchObject({ status: 0, stderr: "" });

  const today = new Date().toISOString().slice(0, 10);
  const text = `# Changelog\n\n## Unreleased\n\n## 0.2.0 (${today})\n\n### Added\n\n- A thing.\n\n## 0.0.9 (2026-01-01)\n`;
  expect(readFileSync(at("CHANGELOG.md"), "utf8")).toContain(text);
  const files = ["package.json", "package-lock.json", "server.json", "catalogues/bundle/manifest.json"];
  expect(files.map(versionIn)).toEqual(["0.2.0", "0.2.0", "0.2.0", "0.2.0"]);
  expect(readFileSync(at("catalogues/plugin/.claude-plugin/plugin.json"), "utf8")).toContain("claude-agents-mcp@0.2.0");
  expect(git("status", "--porcelain")).toBe("");
  expect(git("log", "--format=%s", "-1").trim()).toBe("release: publish 0.2.0");
  expect(git("describe", "--exact-match").trim()).toBe("v0.2.0");
  expect(release("--notes").stdout).toBe("### Added\n\n- A thing.\n");

  expect(release("0.2.0").stderr).toBe("the tag v0.2.0 exists");
  expect(release("0.2.1").stderr).toBe("CHANGELOG.md has no unreleased entries");
}, 60_000);

describe("a release that is refused", () => {
  it.each([
    ["latest", '"latest" is not a version'],
    ["0.0.9", "0.0.9 is lower than 0.1.0"],
  ])("npm run release refuses the version %s", (version, why) => {
    expect(release(version)).toMatchObject({ status: 1, stderr: expect.stringContaining(why) as string });
  });

  it("npm run release refuses uncommitted changes, and a section for another version", () => {
    writeFileSync(at("new.txt"), "");
    expect(release("0.2.0").stderr).toBe("there are uncommitted changes");
    changelog("## 0.3.0 (unreleased)\n\n- A thing.\n");
    expect(release("0.2.0").stderr).toBe("CHANGELOG.md prepares 0.3.0, not 0.2.0");
    expect(git("status", "--porcelain")).toBe("");
  });
});

it("--verify requires the tag, the repository, and a registry name of its owner", () => {
  changelog("## Unreleased\n\n## 0.1.0 (2026-01-01)\n\n- A thing.\n");
  const verify = (tag: string, owner: string) => release("--verify", tag, "--owner", owner);
  expect(verify("v0.2.0", "me").stderr).toBe("the tag v0.2.0 is not v0.1.0, the version in package.json");
  expect(verify("v0.1.0", "me").stderr).toContain("package.json has no repository");
  const manifest = JSON.parse(readFileSync(at("package.json"), "utf8")) as object;
  const own = { ...manifest, repository: "https://github.com/Me/x", mcpName: "io.github.me/claude-agents-mcp" };
  writeFileSync(at("package.json"), JSON.stringify(own));
  expect(verify("v0.1.0", "other").stderr).toContain("the registry takes only io.github.other/");
  expect(verify("v0.1.0", "Me")).toEqual({ status: 0, stderr: "", stdout: "" });
});
