import { readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it, type TestContext } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { homeOf } from "../kit/faults/shims.ts";
import { freeze } from "../kit/store/freeze.ts";
import { stream } from "../kit/clients/streaming.ts";
import { createWorld, type AgentKind, type World } from "../kit/world.ts";
import { allowRequest, BACK_PROMPT, writing } from "../kit/faults/driving.ts";
import { isFull, report } from "../kit/faults/figures.ts";
import { countLost, expectUsable, Watcher } from "../kit/faults/watcher.ts";

/**
 * Creates a world for a single test, because concurrent tests count their own processes. The stand-in suffices for faults of
 * servers.
 */
async function worldOf({ onTestFinished }: TestContext, agent: AgentKind = "stand-in"): Promise<World> {
  const world = await createWorld({ agent });
  onTestFinished(async () => world.close());
  return world;
}

describe.concurrent("two servers on one store", () => {
  const runs = isFull ? 20 : 1;
  it(
    "two servers drive each other's sessions and see equal events",
    async (test) => {
      const world = await worldOf(test);
      const sum = { lost: 0, leftOver: 0 };
      for (let run = 0; run < runs; run++) {
        const owner = await world.server();
        const other = await world.server();
        const cwd = world.folder();
        const file = join(cwd, "a.txt");
        const { sessionId } = await owner.call("claude_code", { prompt: writing(file), cwd });
        const watcher = new Watcher(other);
        await watcher.follow(sessionId);
        expect(await allowRequest(other, sessionId)).toMatchObject({ status: "idle", result: { result: "Written." } });
        expect(readFileSync(file, "utf8")).toBe("hello");
        sum.lost += await countLost(owner, sessionId, watcher.seen);

        // The process stays with its owner: the reply is passed on.
        await expectUsable(other, sessionId, BACK_PROMPT);
        const { sessions } = await owner.call("claude_code_session", { action: "get", sessionId });
        expect(sessions).toMatchObject([{ processStarts: 1, totalTurns: 3 }]);

        const asking = await owner.call("claude_code_reply", {
          sessionId,
          prompt: writing(join(cwd, "b.txt")),
          waitMs: 30_000,
        });
        expect(asking.status).toBe("waiting_permission");
        const first = await other.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
        const { requestId } = first.actions[0] ?? {};
        const deny = { action: "respond_permission", sessionId, requestId, decision: "deny", waitMs: 0 };
        await other.call("claude_code_check", deny);
        const second = await owner.refusal("claude_code_check", deny);
        expect(second).toMatchObject({ code: "PERMISSION_REQUEST_NOT_FOUND" });
        expect(second.text).toContain("deny, by caller");

        await owner.end(sessionId);
        await other.call("claude_code_session", { action: "cancel", sessionId });
        const cancelled = await owner.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
        expect(cancelled.status).toBe("cancelled");
        await Promise.all([owner.close(), other.close()]);
        sum.leftOver += await world.quiet(10_000).then(
          () => 0,
          () => world.processes().length,
        );
      }
      report({ fault: "two servers, one store", runs, ...sum });
      expect(sum).toEqual({ lost: 0, leftOver: 0 });
    },
    runs * 60_000,
  );

  it("after the owner's death, the other server takes over with the next command", async (test) => {
    const world = await worldOf(test);
    const owner = await world.server();
    const other = await world.server();
    const gate = `never-${world.folder()}`;
    const { sessionId } = await owner.call("claude_code", {
      prompt: scriptTag([{ gateBefore: gate, text: "x" }]),
      cwd: world.folder(),
    });
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    const watching = other.end(sessionId);
    process.kill(owner.pid, "SIGKILL");
    await owner.gone;
    await expectUsable(other, sessionId, BACK_PROMPT);
    // The waiting call returns the loss, or the next state.
    expect((await watching).status).toMatch(/^(error|idle)$/);
    const all = await other.call("claude_code_check", {
      action: "poll",
      sessionId,
      waitMs: 0,
      responseMode: "delta_compact",
    });
    const ends = all.events.filter(({ type }) => type === "result" || type === "error");
    expect(ends.map(({ type }) => type)).toEqual(["error", "result"]);
    expect(JSON.stringify(ends[0])).toContain("The server that ran it has died.");
  });
});

describe.concurrent("a server that freezes", () => {
  it(
    "a frozen server loses its session when its lease expires, and writes no more to it after it thaws",
    { timeout: 180_000 },
    async (test) => {
      const world = await worldOf(test);
      const owner = await world.server();
      const other = await world.server();
      const gate = `never-${world.folder()}`;
      const script = scriptTag([
        { text: "Seen.", tools: [{ name: "Bash", input: { command: "ls" } }] },
        { gateBefore: gate, text: "x" },
      ]);
      const { sessionId } = await owner.call("claude_code", {
        prompt: script,
        cwd: world.folder(),
        allowedTools: ["Bash"],
      });
      await world.model.waitForRequest(
        (request) => request.sessionId === sessionId && request.lastUserText.includes(gate),
      );
      await freeze(owner.pid, homeOf(world));

      // Before the lease expires, the other server cannot know that the owner will not return.
      const deadline = Date.now() + 90_000;
      let status = "running";
      while (status === "running" && Date.now() < deadline) {
        const waiting = { action: "poll", sessionId, cursor: 1_000, waitMs: 10_000 };
        ({ status } = await other.call("claude_code_check", waiting));
      }
      expect(status).toBe("error");
      await expectUsable(other, sessionId, BACK_PROMPT);
      const before = await other.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });

      process.kill(owner.pid, "SIGCONT");
      const seen = await owner.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
      expect(seen.events).toEqual(before.events);
      await expectUsable(owner, sessionId, BACK_PROMPT);
      report({ fault: "server frozen beyond its lease, and thawed", runs: 1, lost: 0, leftOver: 0 });
    },
  );
});

describe.concurrent("a client that vanishes", () => {
  const runs = isFull ? 20 : 1;
  it(
    "the turn of a client that vanishes during a call is recorded as interrupted; no process is left, and another client continues",
    async (test) => {
      const real = await worldOf(test, "real");
      const sum = { lost: 0, leftOver: 0 };
      for (let run = 0; run < runs; run++) {
        const server = await real.server();
        const cwd = real.folder();
        const command = "node -e 'setInterval(() => {}, 1000)'";
        const script = scriptTag([
          { text: "I run it.", tools: [{ name: "Bash", input: { command } }] },
          { text: "never" },
        ]);
        const { sessionId } = await server.call("claude_code", { prompt: script, cwd, allowedTools: ["Bash"] });
        const watcher = new Watcher(server);
        const watching = watcher.follow(sessionId);
        const isRunning = () => real.processes().some((process) => process.command.startsWith("node -e"));
        await test.expect.poll(isRunning, { timeout: 40_000 }).toBe(true);
        await server.close();
        await watching;
        sum.leftOver += await real.quiet(10_000).then(
          () => 0,
          () => real.processes().length,
        );
        const next = await real.server();
        const after = await next.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
        expect(after).toMatchObject({ status: "idle", result: { isError: true, errorSubtype: "shutdown" } });
        sum.lost += await countLost(next, sessionId, watcher.seen);
        await expectUsable(next, sessionId, BACK_PROMPT);
        await next.close();
      }
      report({ fault: "client vanished in mid-call", runs, ...sum });
      expect(sum).toEqual({ lost: 0, leftOver: 0 });
    },
    runs * 60_000,
  );
});

it.concurrent(
  "claude_chat_query returns its reply even if its session cannot be closed because the owner is frozen",
  async (test) => {
    const world = await worldOf(test);
    const args = ["--toolsets", "chat"];
    const [owner, caller] = [await world.server({ args }), await world.server({ args })];
    const sessionId = String((await stream(owner, "claude_session_create", { cwd: world.folder() })).data["sessionId"]);
    const stop = ({ data }: { data: unknown }) => {
      if (String(data).endsWith("completed")) process.kill(owner.pid, "SIGSTOP");
    };
    const query = { sessionId, prompt: scriptTag([{ text: "The reply." }]), closeAfter: true };
    const { data } = await stream(caller, "claude_chat_query", query, { onLog: stop }).finally(() =>
      process.kill(owner.pid, "SIGCONT"),
    );
    expect(data).toMatchObject({ finalText: "The reply." });
  },
);
