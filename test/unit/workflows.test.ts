import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const Manifest = z.object({ scripts: z.record(z.string(), z.string()) });
const { scripts } = Manifest.parse(JSON.parse(readFileSync("package.json", "utf8")));
const ci = readFileSync(".github/workflows/ci.yml", "utf8");

describe("continuous integration", () => {
  it("continuous integration runs for main, for version tags, for pull requests, and on manual start", () => {
    const [, events = ""] = /^on:\n((?: .*\n)+)/m.exec(ci) ?? [];
    expect(events).toContain("branches: [main]");
    expect(events).toContain('tags: ["v*"]');
    expect(events).toContain("  pull_request:\n");
    expect(events).toContain("  workflow_dispatch:\n");
  });
});

describe("a release", () => {
  const release = readFileSync(".github/workflows/release.yml", "utf8");
  const jobs = Object.fromEntries(release.split(/^ {2}(?=\w+:$)/m).map((job) => [/^\w+/.exec(job)?.[0] ?? "", job]));

  it("a release is published after all checks, to npm before the registry, which reads the package there", () => {
    expect(release).toContain('tags: ["v*"]');
    expect(jobs["check"]).toMatch(/release\.mjs --verify[^]*\.ci\/run[^]*try-readme\.mjs[^]*--pack/);
    expect(jobs["publish"]).toMatch(/needs: check[^]*npm publish --provenance[^]*sha256sum[^]*mcp-publisher publish/);
    expect(jobs["attach"]).toMatch(/needs: publish[^]*claude-agents-mcp\.mcpb/);
  });

  it("a release may identify itself only in `publish`, and write only in `attach`", () => {
    const having = (right: string) => Object.keys(jobs).filter((name) => jobs[name]?.includes(right));
    expect(having("id-token: write")).toEqual(["publish"]);
    expect(having("contents: write")).toEqual(["attach"]);
  });

  it("a release runs scripts that exist", () => {
    const files = [...release.matchAll(/\bnode (scripts\/\S+)/g)].map(([, file = ""]) => file);
    expect(files.length).toBeGreaterThan(3);
    expect(files.filter((file) => !existsSync(file))).toEqual([]);
  });
});

describe("the common names of scripts", () => {
  it.each([
    ["format:check", "check:format"],
    ["lint", "check:lint"],
    ["typecheck", "check:types"],
  ])("%s is another name of the script %s", (alias, script) => {
    expect(scripts[alias]).toBe(`npm run -s ${script}`);
    expect(scripts).toHaveProperty([script]);
  });
});
