import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const Manifest = z.object({ scripts: z.record(z.string(), z.string()) });
const { scripts } = Manifest.parse(JSON.parse(readFileSync("package.json", "utf8")));
const ci = readFileSync(".github/workflows/ci.yml", "utf8");

describe("continuous integration", () => {
  it("runs for main, for version tags, for pull requests, and when it is started manually", () => {
    const [, events = ""] = /^on:\n((?: .*\n)+)/m.exec(ci) ?? [];
    expect(events).toContain("branches: [main]");
    expect(events).toContain('tags: ["v*"]');
    expect(events).toContain("  pull_request:\n");
    expect(events).toContain("  workflow_dispatch:\n");
  });
});

describe("the common names of scripts", () => {
  it.each([
    ["format:check", "check:format"],
    ["lint", "check:lint"],
    ["typecheck", "check:types"],
  ])("include %s as another name of %s", (alias, script) => {
    expect(scripts[alias]).toBe(`npm run -s ${script}`);
    expect(scripts).toHaveProperty([script]);
  });
});
