import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Tests `--max-live`: the limit holds over all servers, and no waiting session is lost. */

const PLACES = ["--max-live", "2"];

const world = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await world.server({ args: PLACES });
});

const ok = scriptTag([{ text: "ok" }]);

/** Ids of sessions with a process. Deduplicated: a new child of Claude Code briefly shows the command line of Claude Code. */
function runningSessions(): string[] {
  const ids = world.processes().map(({ command }) => /--(?:session-id|resume)[= ](\S+)/.exec(command)?.[1]);
  return [...new Set(ids.filter((id) => id !== undefined))];
}

/** Returns a script whose command runs until `file` exists. */
function untilFile(file: string) {
  const command = `until [ -e ${file} ]; do sleep 0.05; done`;
  return scriptTag([{ text: "I wait.", tools: [{ name: "Bash", input: { command } }] }, { text: "Gone on." }]);
}

async function start(on: Server, prompt: string, args: object = {}) {
  return (await on.call("claude_code", { prompt, cwd: world.folder(), allowedTools: ["Bash"], ...args })).sessionId;
}

describe("--max-live", () => {
  it("two servers run eight sessions with at most --max-live processes at a time", async () => {
    let most = 0;
    const watching = setInterval(() => (most = Math.max(most, runningSessions().length)), 50);
    const other = await world.server({ args: PLACES });
    const ids = await Promise.all(Array.from({ length: 8 }, async (_, n) => start(n % 2 ? other : server, ok)));
    const ended = await Promise.all(ids.map(async (id) => server.end(id)));
    expect(ended.map(({ result }) => result?.result)).toEqual(ids.map(() => "ok"));
    const again = await Promise.all(
      ids.map(async (sessionId) => other.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 })),
    );
    expect(again.map(({ result }) => result?.sessionTotalTurns)).toEqual(ids.map(() => 2));
    clearInterval(watching);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(2);
    await other.close();
  });

  it("a session of `claude_code` waits while all processes are busy, with `priority` background behind all others", async () => {
    const folder = world.folder();
    const gate = join(folder, "gate");
    const busy = [await start(server, untilFile(gate)), await start(server, untilFile(gate))];
    for (const id of busy) {
      const said = async () => JSON.stringify((await server.call("claude_code_check", poll(id))).events);
      await expect.poll(said, { timeout: 20_000 }).toContain("I wait.");
    }
    const waiting = await start(server, ok);
    const told = await server.call("claude_code_check", { ...poll(waiting), waitMs: 20_000, until: "event" });
    expect(told).toMatchObject({ status: "running", events: [{ data: { notice: "waiting" } }] });
    expect(told.events[0]?.data["message"]).toContain("--max-live");
    const [record] = (await server.call("claude_code_session", { action: "get", sessionId: waiting })).sessions;
    expect(record).toMatchObject({ status: "running", waiting: { kind: "slot" }, processLive: false });

    const background = await start(server, ok, { advanced: { priority: "background" } });
    const second = await start(server, ok);
    expect(await server.call("claude_code_check", poll(background))).toMatchObject({ waitingBefore: 2 });
    expect(await server.call("claude_code_check", poll(waiting))).toMatchObject({ waitingBefore: 0 });
    expect(await server.call("claude_code_check", poll(second))).toMatchObject({ waitingBefore: 1 });
    const stopped = await server.call("claude_code_session", { action: "interrupt", sessionId: second });
    expect(stopped.sessions).toHaveLength(1);
    expect(await server.end(second)).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });

    writeFileSync(gate, "");
    expect(await server.end(waiting)).toMatchObject({ status: "idle", result: { result: "ok", isError: false } });
    for (const id of busy) expect(await server.end(id)).toMatchObject({ result: { result: "Gone on." } });
    expect(await server.end(background)).toMatchObject({ status: "idle", result: { result: "ok" } });
    expect(runningSessions().length).toBeLessThanOrEqual(2);
  });
});

describe("half of --max-live", () => {
  it("background work alone keeps at most half of --max-live while sessions wait, and its end is reported", async () => {
    const command = "while :; do sleep 0.1; done";
    const shell = { tools: [{ name: "Bash", input: { command, run_in_background: true, description: "watching" } }] };
    const watch = scriptTag([shell, { text: "It runs." }]);
    const first = await start(server, watch);
    await server.end(first);
    const later = await start(server, watch);
    await server.end(later);
    const third = await start(server, ok);
    expect(await server.end(third)).toMatchObject({ result: { result: "ok" } });
    const told = await server.call("claude_code_check", poll(first));
    const notices = told.events.filter(({ data }) => data["notice"] === "warning");
    expect(notices.map(({ data }) => data["message"])).toEqual([expect.stringContaining("watching")]);
    expect(told.background).toEqual([]);
    const left = await server.call("claude_code_check", poll(later));
    expect(left.background).toMatchObject([{ description: "watching" }]);
    const again = await server.call("claude_code_reply", { sessionId: first, prompt: ok, waitMs: 40_000 });
    expect(again).toMatchObject({ result: { result: "ok", sessionTotalTurns: 3 } });
  });
});

function poll(sessionId: string) {
  return { action: "poll", sessionId, waitMs: 0 };
}
