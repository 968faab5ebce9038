import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Connection } from "../support/connection.ts";
import { calling } from "../support/fake-user.ts";
import { useWorld } from "../support/world.ts";

/** Prompts to one session from two clients, of one server or of two, of which one allows less. */

const world = useWorld({ agent: "stand-in", daemon: "never" });

const STRICT = ["--deny-rules", "Bash(touch *)"];
const REST = { waitMs: 40_000 };

/** Claude Code notes its process, and tries to make a file. */
const deed = (name: string) =>
  calling([`echo $PPID >> processes`, `touch ${name}`].map((command) => ({ name: "Bash", input: { command } })));

function at(cwd: string) {
  const text = () => readFileSync(join(cwd, "processes"), "utf8").trim().split("\n");
  return { made: (name: string) => existsSync(join(cwd, name)), processes: text };
}

it.each([
  ["of two servers", "server"],
  ["of one daemon", "shared"],
] as const)(
  "a stricter prompt restarts the process once, and the same two clients %s in turn do not again",
  async (_, of) => {
    const cwd = world.folder();
    const { made, processes } = at(cwd);
    const [loose, strict] = [await world[of](), await world[of]({ args: STRICT })];
    const begin = { prompt: deed("first"), cwd, allowedTools: ["Bash"], ...REST };
    const { sessionId } = await loose.call("claude_code", begin);
    for (const [index, client] of [strict, loose, strict].entries()) {
      await client.call("claude_code_reply", { sessionId, prompt: deed(`later-${String(index)}`), ...REST });
    }
    expect(made("first")).toBe(true);
    // The process keeps what it was started under, also for the client that allows more.
    expect([0, 1, 2].map((index) => made(`later-${String(index)}`))).toEqual([false, false, false]);
    const [before, ...after] = processes();
    expect(new Set(after)).toEqual(new Set([after[0]]));
    expect(after[0]).not.toBe(before);
    // Of its own client's policy the session has kept nothing.
    const { sessionId: own } = await loose.call("claude_code", { ...begin, prompt: deed("own") });
    expect([own === sessionId, made("own")]).toEqual([false, true]);
  },
);

it("a stricter prompt over HTTP does not join a running turn; it waits, and another process takes it under both policies", async () => {
  const cwd = world.folder();
  const { made, processes } = at(cwd);
  const loose = await world.server();
  const http = await world.http({ args: STRICT });
  const strict: Connection = await http.connect("modern");
  const script = [{ gateBefore: "the end of the turn", text: "Begun." }];
  const begin = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"], waitMs: 0 };
  const { sessionId } = await loose.call("claude_code", begin);
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  const sent = { sessionId, prompt: deed("queued"), waitMs: 0 };
  const refused = await strict.refusal("claude_code_reply", { ...sent, whenBusy: "steer" });
  expect(refused).toMatchObject({
    code: "PERMISSION_DENIED",
    text: expect.stringContaining("whenBusy: queue") as string,
  });
  await strict.call("claude_code_reply", { ...sent, whenBusy: "queue" });
  world.model.release("the end of the turn");
  await strict.end(sessionId);
  expect([made("queued"), processes().length]).toEqual([false, 1]);
  await loose.call("claude_code_reply", { sessionId, prompt: deed("after"), ...REST });
  expect([made("after"), new Set(processes()).size]).toEqual([false, 1]);
});
