import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { runScript } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import type { World } from "../kit/world.ts";
import { bash, bypass, createSandboxed, playTools, write, type Sandboxed } from "../kit/attacks/sandboxed-server.ts";

let sandboxed: Sandboxed;
let world: World;
let server: Server;
let outside: string;
let project: string;
let programs: string;
beforeAll(async () => {
  sandboxed = await createSandboxed();
  ({ world, server, outside, project, programs } = sandboxed);
});
afterAll(async () => world.close());

describe("a sandboxed session", () => {
  it("a sandboxed session cannot write files that run outside later: Claude Code's settings, programs in PATH, hooks of a trusted project and git", async () => {
    execFileSync("git", ["init", "-q", project]);
    const paths = [
      join(world.configFolder, "settings.json"),
      join(world.configFolder, "hooks", "x"),
      join(world.configFolder, ".claude.json.new"),
      join(programs, "bwrap"),
      join(project, ".claude", "settings.json"),
      join(project, ".claude", "settings.local.json"),
      join(project, ".mcp.json"),
      join(project, ".git", "hooks", "pre-commit"),
    ];
    await playTools(
      server,
      [
        ...paths.map((path) => bash(`mkdir -p $(dirname ${path}); echo '{}' > ${path}`)),
        ...paths.filter((path) => path.startsWith(project)).map(write),
        bash("mv bin bin2; mkdir bin; touch bin/bwrap; mv .git git2; mkdir -p .git/hooks; touch .git/hooks/pre-commit"),
      ],
      // `project` is the session's own folder here, and an additional folder below.
      { cwd: project },
    );
    await playTools(
      server,
      [
        ...paths.slice(3, 7).map((path) => bash(`mkdir -p $(dirname ${path}); echo '{}' > ${path}`)),
        ...paths.slice(3, 7).map(write),
      ],
      {
        cwd: world.folder(),
        advanced: { additionalDirectories: [project] },
      },
    );
    expect(paths.filter((path) => existsSync(path))).toEqual([]);
  });

  it("settings of a trusted project do not loosen the sandbox, and settings in a folder below it are not read", async () => {
    const cwd = world.folder();
    const trusting = await world.server({
      args: ["--sandbox", "required", "--allow-bypass", "--trust-dir", cwd],
      env: { IS_SANDBOX: "1" },
    });
    const before = readdirSync(outside);
    const hook = (mark: string) => ({ SessionStart: [{ hooks: [{ type: "command", command: `touch ${mark}` }] }] });
    const sandbox = {
      enabled: false,
      failIfUnavailable: false,
      allowUnsandboxedCommands: true,
      excludedCommands: ["touch *"],
      enableWeakerNestedSandbox: true,
      filesystem: { disabled: true, allowWrite: ["/", outside] },
      network: { allowAllUnixSockets: true, allowedDomains: ["*"], strictAllowlist: false },
    };
    const permissions = {
      allow: ["Edit", `Edit(/${outside}/**)`],
      additionalDirectories: [outside],
      blockWritesOutsideWorkingDirectories: false,
    };
    const tools = [bash(`touch ${outside}/M`), bash("touch in-sandbox"), write(join(outside, "M"))];
    const below = join(cwd, "below");
    for (const folder of [cwd, below]) {
      mkdirSync(join(folder, ".claude"), { recursive: true });
      const settings = JSON.stringify({ sandbox, permissions, hooks: hook(join(folder, "hook-ran")) });
      for (const name of ["settings.json", "settings.local.json"])
        writeFileSync(join(folder, ".claude", name), settings);
      await runScript(trusting, [{ tools }, { text: "tried" }], { ...bypass, cwd: folder });
    }
    expect([cwd, below].map((folder) => existsSync(join(folder, "hook-ran")))).toEqual([true, false]);
    expect(existsSync(join(below, "in-sandbox"))).toBe(true);
    expect(readdirSync(outside)).toEqual(before);
  });

  it("processes left behind by a command end with its sandbox", async () => {
    const cwd = world.folder();
    // Duration unique to this process, so that `sleep` is found.
    const sleep = `sleep 86${String(process.pid)}`;
    const kinds = [
      `${sleep} &`,
      `nohup ${sleep} > /dev/null 2>&1 &`,
      `setsid ${sleep} &`,
      `(${sleep} & ) &`,
      `env -i setsid $(which sleep) ${sleep.slice(6)} &`,
      `setsid sh -c 'trap "" TERM HUP; ${sleep}' &`,
    ];
    await playTools(
      server,
      kinds.map((kind, index) => bash(`${kind}\ntouch started-${String(index)}`)),
      { cwd },
    );
    expect(readdirSync(cwd)).toHaveLength(kinds.length);
    const left = () => readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(sleep));
    await expect.poll(left).toEqual([]);
  });
});

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}
