import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { denyRulesOf } from "../../src/security/deny-rules.ts";
import { packageFolders, ownedPaths } from "../../src/security/installation-paths.ts";
import {
  protectedFor,
  protectedPaths,
  findProtection,
  SERVER_CODE,
  type ProtectedPath,
} from "../../src/security/protected-paths.ts";

let root: string;
const at = (path: string) => join(root, path);
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "protected-")));
  for (const folder of ["state", "work", "checkout/node_modules/sdk", "claude/plans"]) {
    mkdirSync(at(folder), { recursive: true });
  }
  symlinkSync(at("state"), at("named"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function tableFor(cwd: string): Promise<ProtectedPath[]> {
  const table = await protectedPaths([
    { path: at("named"), extent: "tree", why: "state" },
    { path: at("store.db"), extent: "prefix", why: "store" },
    { path: at("checkout"), extent: "checkout", why: SERVER_CODE },
    { path: at("checkout/node_modules/sdk"), extent: "tree", why: SERVER_CODE },
    { path: at("checkout/config.json"), extent: "tree", why: "the configuration of this server" },
    { path: at("checkout/store.db"), extent: "prefix", why: "store" },
    { path: at("claude"), extent: "tree", why: "claude of the server" },
    { path: at("other-claude"), extent: "tree", why: "claude of another" },
  ]);
  return protectedFor(table, { cwd: at(cwd), configFolder: at("claude"), stateFile: at("claude/.claude.json") });
}

describe("paths that no session may reach", () => {
  const ALL = "enter read write";
  it.each<[string, string]>([
    ["state", ALL],
    ["state/http-token", ALL],
    ["named/http-token", ALL],
    ["STATE/Http-Token", ALL],
    ["state-of-mind", ""],
    ["store.db-wal", ALL],
    ["store.db", ALL],
    ["store", ""],
    ["work/store.db", ""],
    ["checkout/dist/cli.js", ALL],
    ["other-claude/plans/x.md", ALL],
    ["claude/settings.json", ALL],
    ["claude/CLAUDE.md", ALL],
    ["claude/agents/x.md", ALL],
    ["claude/plansx", ALL],
    ["claude/plans/x.md", "enter"],
    ["claude/todos/x.json", "enter"],
    ["claude/agent-memory/a/MEMORY.md", "enter"],
    ["claude/projects/p/memory/MEMORY.md", "enter"],
    ["claude/projects/p/session/tool-results/a.txt", "enter write"],
    ["claude/projects/p/session.jsonl", ALL],
    ["claude/projects/p/session/subagents/a.jsonl", ALL],
    ["claude/projects/p/index.json", ALL],
    ["work/x", ""],
  ])("the protection of %s covers: %s", async (path, expected) => {
    const table = await tableFor("work");
    const closed = (["enter", "read", "write"] as const).filter((access) => findProtection([at(path)], table, access));
    expect(closed.join(" ")).toBe(expected);
  });

  it("a session in the server's checkout may change sources and packages, but not configuration or store", async () => {
    const table = await tableFor("checkout");
    for (const path of ["checkout/src/a.ts", "checkout/node_modules/sdk/a.js"]) {
      expect(findProtection([at(path)], table, "write")).toBeUndefined();
    }
    expect(findProtection([at("state")], table, "read")).toMatchObject({ why: "state" });
    const whyOf = (path: string) => findProtection([at(path)], table, "read")?.why;
    expect(whyOf("checkout/config.json")).toBe("the configuration of this server");
    expect(whyOf("checkout/store.db-wal")).toBe("store");
  });

  it("packages loaded from outside the bundle are protected, with their dependencies", () => {
    const names = packageFolders(["pino"], import.meta.filename).map((folder) => basename(folder));
    expect(names).toEqual(expect.arrayContaining(["pino", "sonic-boom", "thread-stream", "real-require"]));
    const packages: Record<string, string[]> = { first: ["second"], second: ["first"], third: [] };
    for (const [name, needed] of Object.entries(packages)) {
      mkdirSync(at(`npm/node_modules/${name}`), { recursive: true });
      const dependencies = Object.fromEntries(needed.map((each) => [each, "1"]));
      writeFileSync(at(`npm/node_modules/${name}/package.json`), JSON.stringify({ dependencies }));
    }
    const found = packageFolders(["first", "absent"], at("npm/index.js"));
    expect(found).toEqual([at("npm/node_modules/first"), at("npm/node_modules/second")]);
  });

  it("every file that a spawnWrapper names is protected", async () => {
    for (const name of ["hold.py", "hold.json"]) writeFileSync(at(name), "");
    const wrapper = ["/opt/python3", "-u", at("hold.py"), `--settings=${at("hold.json")}`, at("work"), "/dev/null"];
    const night = { claudeConfigDir: at("night"), environment: { A_TOKEN: at("night-token") } };
    const settings = {
      principals: { ann: { spawnWrapper: wrapper } },
      profiles: { night },
      sharedFolders: [at("shared")],
    };
    const owned = await ownedPaths({
      approvers: [],
      settings,
      configFiles: [at("config/user.json")],
      stateFolder: at("state"),
      socketFolders: [at("run")],
      store: undefined,
      storePassword: undefined,
      cacheFolder: at("cache"),
    });
    const paths = owned.map(({ path }) => path);
    const named = ["/opt/python3", at("hold.py"), at("hold.json"), at("run"), at("config/user.json")];
    named.push(at("night"), at("night-token"), at("shared/.claude-agents-volume"));
    expect(paths).toEqual(expect.arrayContaining(named));
    for (const path of [at("work"), at("shared"), "/dev/null"]) expect(paths).not.toContain(path);
  });

  it("rules for Claude Code name protected paths by both names, in fewer than 20,000 characters", async () => {
    const rules = denyRulesOf(await tableFor("work"));
    for (const folder of ["state", "named"]) {
      expect(rules).toEqual(expect.arrayContaining([`Read(/${at(folder)})`, `Edit(/${at(folder)})`]));
    }
    expect(rules).toContain(`Read(/${at("store.db")}*)`);
    expect(rules.some((rule) => rule.endsWith("/plans)"))).toBe(false);
    // Windows limits a command line to 32,767 characters.
    expect(JSON.stringify(rules).length).toBeLessThan(20_000);
  });
});
