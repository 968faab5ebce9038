import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { childrenRunning } from "../kit/process-tree.ts";

function demo(args: readonly string[] = [], own: Record<string, string> = {}) {
  const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], ...own };
  return spawnSync(process.execPath, ["dist/cli/main.js", "demo", ...args], { encoding: "utf8", env });
}

describe("claude-agents-mcp demo", () => {
  it("the demo plays the main job in plain, readable text when piped, and exits with 0", () => {
    const { status, stdout, stderr } = demo();
    expect(stderr).toBe("");
    expect(stdout).toContain("waiting for a decision: Write");
    expect(stdout).toMatch(/hello\.txt is there/);
    expect(stdout).toMatch(/receipt: .*"names":\["hello\.txt"\]/);
    expect(stdout).toMatch(/verification failed, attempt 1 of 2: grep Hello notes\.txt exited with [12]\n/);
    expect(stdout).toMatch(/verification passed, attempt 2 of 2: grep Hello notes\.txt exited with 0\n/);
    expect(stdout).toMatch(/notes\.txt is verified/);
    expect(stdout).toMatch(/The turn waits, and goes on by itself at /);
    expect(stdout).toContain("the refused request was sent once more, unchanged");
    expect(stdout).toMatch(/one process served both turns/);
    expect(stdout).toMatch(/forbidden\.txt is not there/);
    expect(stdout).toMatch(/All checks passed: \d+ turns, \$\d+\.\d{4}/);
    expect(stdout).not.toContain("\u001b");
    expect(status).toBe(0);
  });

  it("demo --json prints one object a line, the last one for the ending", () => {
    const { status, stdout } = demo(["--json"]);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.at(-1)).toMatchObject({
      ending: {
        ok: true,
        fileWritten: true,
        receiptRight: true,
        deniedFileAbsent: true,
        sameProcess: true,
        verified: true,
        wentOn: true,
      },
    });
    expect(status).toBe(0);
  });

  it("an unknown flag of the demo gets one clear line and exit code 2", () => {
    const { status, stderr, stdout } = demo(["--fast"]);
    expect(stderr).toMatch(/^claude-agents-mcp: demo: .*--fast.*--live, --json, --keep\.\n$/);
    expect(stdout).toBe("");
    expect(status).toBe(2);
  });

  it("the demo says why it cannot run where there is no Claude Code", () => {
    const { status, stderr, stdout } = demo([], { CLAUDE_CODE_MCP_CLAUDE_PATH: "/nowhere/claude" });
    expect(stderr).toMatch(/^claude-agents-mcp: Claude Code did not start: --claude-path \/nowhere\/claude .*\n$/);
    expect(stdout).toBe("");
    expect(status).toBe(1);
  });

  describe("a demo with a folder of its own for temporary files", () => {
    let folder: string;
    beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "demo-"))));
    afterEach(() => rmSync(folder, { recursive: true }));

    function start() {
      const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], TMPDIR: folder };
      return spawn(process.execPath, ["dist/cli/main.js", "demo"], { env, stdio: ["ignore", "pipe", "ignore"] });
    }

    it("the demo ends with its reader or by SIGTERM, and removes its folder", async () => {
      const ends = ["its reader", "SIGTERM"].map(async (by) => {
        const child = start();
        await once(child.stdout, "data");
        if (by === "SIGTERM") child.kill("SIGTERM");
        else child.stdout.destroy();
        const [code] = (await once(child, "exit")) as [number];
        return code;
      });
      expect(await Promise.all(ends)).toEqual([1, 143]);
      expect(readdirSync(folder)).toEqual([]);
    });

    it("the demo ends by a signal while its server does not answer", async () => {
      const child = start();
      const servers = () => childrenRunning(child.pid ?? 0, "serve");
      await expect.poll(servers, { interval: 2, timeout: 30_000 }).toHaveLength(1);
      for (const pid of servers()) process.kill(pid, "SIGSTOP");
      child.kill("SIGINT");
      expect(await once(child, "exit")).toEqual([130, null]);
      expect(readdirSync(folder)).toEqual([]);
    });
  });
});
