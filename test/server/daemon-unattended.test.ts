import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import type { Connection } from "../kit/clients/connection.ts";
import { runSessions } from "../kit/clients/sessions-command.ts";
import { useWorld } from "../kit/world.ts";

/** Tests sessions of a daemon without a connected or attending client. */

const world = useWorld({ agent: "stand-in" });

const asks = (file: string, gate: string) =>
  scriptTag([{ tools: [{ name: "Bash", input: { command: `touch ${file}` } }], gateBefore: gate }, { text: "asked" }]);

/** Reads the log without a client, because a client would attend to the session. */
async function readLog(sessionId: string): Promise<string> {
  return (await runSessions(["export", sessionId], { HOME: dirname(world.configFolder) })).stdout;
}

async function readNotices(client: Connection, sessionId: string): Promise<string> {
  const { events } = await client.call("claude_code_check", {
    action: "poll",
    sessionId,
    responseMode: "full",
    waitMs: 0,
  });
  return JSON.stringify(events.filter(({ data }) => data["notice"] === "unattended"));
}

describe("a request without a connected client", () => {
  it("a request without a connected client waits, and is shown by the next client that shows forms", async () => {
    const daemon = await world.daemon({ name: "waits" });
    const cwd = world.folder();
    const first = await daemon.client({ person: () => ({ action: "cancel" }) });
    const { sessionId } = await first.call("claude_code", { prompt: asks("yes.txt", "left"), cwd });
    await first.close();
    world.model.release("left");
    await expect.poll(async () => readLog(sessionId)).toContain("It waits for the next one");
    let asked = 0;
    const next = await daemon.client({
      person: () => {
        asked += 1;
        return { action: "accept", content: { decision: "allow" } };
      },
    });
    expect(await next.end(sessionId)).toMatchObject({ result: { result: "asked" } });
    expect([asked, readdirSync(cwd)]).toEqual([1, ["yes.txt"]]);
    await daemon.close();
  });

  it("`--unattended deny` of a client denies a request at once and tells Claude Code why, despite other clients", async () => {
    const daemon = await world.daemon({ name: "denies" });
    const cwd = world.folder();
    const [first, next] = [await daemon.client({ args: ["--unattended", "deny"] }), await daemon.client()];
    const { sessionId } = await first.call("claude_code", { prompt: asks("no.txt", "gone"), cwd });
    const { sessionId: own } = await next.call("claude_code", { prompt: asks("own.txt", "gone"), cwd });
    await first.close();
    world.model.release("gone");
    await expect.poll(() => world.transcript(sessionId)).toContain("denies such requests");
    expect((await next.news(own)).actions).toMatchObject([{ toolName: "Bash" }]);
    await next.call("claude_code_session", { action: "cancel", sessionId: own });
    expect(await next.end(sessionId)).toMatchObject({ result: { result: "asked" } });
    expect(existsSync(join(cwd, "no.txt"))).toBe(false);
    expect(await readNotices(next, sessionId)).toContain("denied (--unattended deny)");
    await daemon.close();
  });
});

it("an unattended session is interrupted at its next tool call after 300 ms of running turns", async () => {
  const env = constants({ unattendedAfterMs: 200, unattendedMaxMs: 300 });
  const daemon = await world.daemon({ name: "bounded", args: ["--allow-rules", "Bash"], env });
  const cwd = world.folder();
  const first = await daemon.client();
  const { sessionId } = await first.call("claude_code", { prompt: asks("late.txt", "passed"), cwd });
  await first.close();
  await expect.poll(async () => readLog(sessionId)).toContain("passed a bound for unattended work");
  world.model.release("passed");
  await expect.poll(async () => readLog(sessionId)).toContain("unattended_limit");
  const next = await daemon.client();
  const list = { action: "list" };
  expect(await next.call("claude_code_session", list)).toMatchObject({
    unattended: `1 session continued unattended: ${sessionId} (stopped by the limit of unattended time)`,
  });
  expect(await next.call("claude_code_session", list)).not.toHaveProperty("unattended");
  const another = await daemon.client();
  expect(await another.call("claude_code_session", list)).not.toHaveProperty("unattended");
  expect(await next.end(sessionId)).toMatchObject({ result: { errorSubtype: "unattended_limit" } });
  const told = await readNotices(next, sessionId);
  expect(told).toContain("goes on unattended, for at most 300 ms of running turns");
  expect(told).toContain("passed a bound for unattended work (300 ms of running turns)");
  await daemon.close();
});
