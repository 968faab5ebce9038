import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";
import { report } from "../kit/faults/figures.ts";
import { countLost, expectUsable, Watcher } from "../kit/faults/watcher.ts";

const disk = mkdtempSync(join(tmpdir(), "ccm-disk-"));

/** Mounts a disk of 32 MB, which only root may do. */
const isMounted = (() => {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=32m", "tmpfs", disk], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

afterAll(() => {
  if (isMounted) execFileSync("umount", [disk]);
  rmSync(disk, { recursive: true, force: true });
});
// Hooks run in reverse order: `world` must close before the disk is unmounted.
const world = useWorld();

/** Fills the disk; callers repeat, because a checkpoint of the store's own log frees some space. */
function fill(): void {
  const { bavail, bsize } = statfsSync(disk);
  if (bavail > 0) writeFileSync(join(disk, "ballast"), Buffer.alloc(bavail * bsize), { flag: "a" });
}

/** Polls the session; resolves with the answer or the error's text. */
async function pollOrError(server: Server, sessionId: string): Promise<Answer | string> {
  return server.call("claude_code_check", { action: "poll", sessionId, cursor: 1_000_000, waitMs: 100 }).catch(String);
}

async function until<T>(ask: () => Promise<T>, enough: (found: T) => boolean): Promise<T> {
  for (let tries = 0; tries < 300; tries++) {
    const found = await ask();
    if (enough(found)) return found;
    // A refusal comes at once: avoid a busy loop.
    await sleep(50);
  }
  throw new Error("it never came");
}

it.runIf(isMounted)(
  "a full disk stops the turn and callers get the reason; work continues when there is space again",
  async () => {
    mkdirSync(join(disk, "store"), { mode: 0o700 });
    const server = await world.server({ args: ["--store", join(disk, "store", "store.db")] });
    const cwd = world.folder();
    const gate = `full-${cwd}`;
    const script = scriptTag([{ text: "So far so good." }]);
    const { sessionId } = await server.call("claude_code", { prompt: script, cwd });
    const watcher = new Watcher(server);
    await watcher.follow(sessionId);

    // Output is stored twice, so that free space inside the store cannot hold it.
    const long = scriptTag([{ gateBefore: gate, text: "x".repeat(1_900_000) }]);
    await server.call("claude_code_reply", { sessionId, prompt: long });
    await world.model.waitForRequest((request) => request.lastUserText.includes(gate));
    fill();
    world.model.release(gate);
    const told = await until(
      async () => {
        fill();
        const answer = await pollOrError(server, sessionId);
        if (typeof answer === "string" || answer.status === "running") return answer;
        // The store's own log still had space: repeat.
        const again = scriptTag([{ text: "x".repeat(1_900_000) }]);
        return server.call("claude_code_reply", { sessionId, prompt: again }).catch(String);
      },
      (found) => typeof found === "string",
    );
    expect(told).toMatch(/INTERNAL.*(full|space)/);
    expect(told).toContain("everything reported before is stored");

    rmSync(join(disk, "ballast"));
    const after = await until(
      async () => pollOrError(server, sessionId),
      (found) => typeof found !== "string" && found.status !== "running",
    );
    expect(["error", "idle"]).toContain(typeof after === "string" ? after : after.status);
    const lost = await countLost(server, sessionId, watcher.seen);
    await expectUsable(server, sessionId, `Go on. ${scriptTag([{ text: "Back." }])}`);
    report({ fault: "disk full", runs: 1, lost, leftOver: 0 });
    expect(lost).toBe(0);
    expect(existsSync(join(disk, "store", "store.db"))).toBe(true);
  },
);
