import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Connection } from "../kit/clients/connection.ts";
import { stream } from "../kit/clients/streaming.ts";
import { overHttp, overStdio } from "../kit/clients/tasks-client.ts";
import { repository } from "../kit/git-repository.ts";
import { useWorld } from "../kit/world.ts";

/** Receipts and verifications of real turns, by every tool and over both transports. */

const world = useWorld({ agent: "stand-in" });
const DETAILS = { CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: "1" };
const ARGS = ["--toolsets", "all", "--allow-rules", "Bash,Write,Read"];

/** Creates a repository with `b.txt` and a changed `a.txt`, and the script of a turn that works in it and lies. */
function task() {
  const cwd = world.folder();
  repository(cwd, "one");
  const prompt = scriptTag([
    { tools: [{ name: "Write", input: { file_path: join(cwd, "new.txt"), content: "1\n2\n" } }] },
    { tools: [{ name: "Bash", input: { command: "sed -i s/b/c/ b.txt" } }] },
    { tools: [{ name: "Bash", input: { command: "exit 3" } }] },
    { text: "I wrote new.txt and nothing else." },
  ]);
  return { cwd, prompt };
}

/** Receipt of `task`: `b.txt` is seen, although only `sed` changed it, and `a.txt` is not, because it was changed before. */
const SEEN = {
  turn: 1,
  by: "tree",
  complete: true,
  files: { added: 1, changed: 1, lines: [3, 1], names: ["b.txt", "new.txt"] },
  commands: { run: 2, failed: 1 },
};

const over = {
  stdio: async (): Promise<Connection> => world.server({ args: ARGS, env: DETAILS }),
  http: async (): Promise<Connection> => (await world.http({ args: ARGS, env: DETAILS })).connect(),
};

describe.each(["stdio", "http"] as const)("a turn over %s that changes files and runs commands", (way) => {
  let client: Connection;
  beforeAll(async () => {
    client = await over[way]();
  });

  it("the result of `claude_code` and of each poll has the receipt, and action `receipt` of `claude_code_session` shows all of it by its `turn`", async () => {
    const { cwd, prompt } = task();
    const begun = await client.call("claude_code", { prompt, cwd, waitMs: 40_000 });
    expect(begun.result).toMatchObject({ result: "I wrote new.txt and nothing else.", receipt: SEEN });
    const { sessionId } = begun;
    const poll = await client.call("claude_code_check", { action: "poll", sessionId, cursor: begun.nextCursor });
    expect(poll.result).toMatchObject({ receipt: SEEN });
    const get = { action: "get", sessionId, includeSensitive: true };
    expect((await client.call("claude_code_session", get)).sessions).toMatchObject([{ receipt: SEEN }]);
    const whole = await client.call("claude_code_session", { action: "receipt", sessionId, turn: 1 });
    expect(whole["receipt"]).toMatchObject({
      turn: 1,
      files: [
        { path: "b.txt", change: "changed", lines: [1, 1], by: ["tree"] },
        { path: "new.txt", change: "added", lines: [2, 0], by: ["tree", "Write"] },
      ],
      commands: [
        { command: "sed -i s/b/c/ b.txt", exit: 0 },
        { command: "exit 3", exit: 3 },
      ],
    });
    const again = await client.call("claude_code_reply", {
      sessionId,
      prompt: scriptTag([{ text: "No." }]),
      waitMs: 40_000,
    });
    expect(again.result).toMatchObject({ receipt: { turn: 2 } });
    expect(JSON.stringify(again.result)).not.toContain("new.txt");
  });

  it("the answers of a query and of conversations have the receipt", async () => {
    const data = async (tool: string, args: Record<string, unknown>) => (await stream(client, tool, args)).data;
    expect(await data("claude_code_query", { ...task(), allowedTools: ["Bash", "Write"] })).toMatchObject({
      status: "done",
      receipt: SEEN,
    });
    expect(await data("claude_direct_query", task())).toMatchObject({ metadata: { receipt: SEEN } });
    const { cwd, prompt } = task();
    const { sessionId } = await data("claude_session_create", { cwd });
    expect(await data("claude_chat_query", { sessionId, prompt })).toMatchObject({ metadata: { receipt: SEEN } });
  });
});

it.each(["http", "stdio"] as const)("a task over %s completes with the receipt", async (way) => {
  const args = ["--allow-rules", "Bash,Write"];
  const client =
    way === "http"
      ? overHttp(await world.http({ args }))
      : overStdio(await world.server({ args, client: "2026-07-28" }));
  const { task: begun } = await client.begin("claude_code", task());
  const done = await client.until(begun, "completed");
  expect(JSON.stringify(done)).toContain('"names":["b.txt","new.txt"]');
});

it("with --receipt off a result has no receipt, and action `receipt` of `claude_code_session` reads the log only", async () => {
  const server = await world.server({ args: [...ARGS, "--receipt", "off"] });
  const { result, sessionId } = await server.call("claude_code", { ...task(), waitMs: 40_000 });
  expect(result).toMatchObject({ isError: false });
  expect(result).not.toHaveProperty("receipt");
  const { receipt } = await server.call("claude_code_session", { action: "receipt", sessionId });
  expect(receipt).toMatchObject({ by: "tools", complete: false, files: [{ path: "new.txt", by: ["Write"] }] });
});

it("`claude_code` accepts one to eight commands as `verify`, refuses what only the operator may give, and keeps the option", async () => {
  const server = await world.server({ env: DETAILS });
  const prompt = scriptTag([{ text: "Nothing to do." }]);
  const start = { prompt, cwd: world.folder() };
  const nine = await server.refusal("claude_code", { ...start, advanced: { verify: Array(9).fill("true") } });
  expect(nine.text).toContain("verify");
  const own = { commands: ["true"], ownTurns: true };
  expect((await server.refusal("claude_code", { ...start, advanced: { verify: own } })).text).toContain("verify");
  const verify = { commands: ["true"], attempts: 0 };
  const { sessionId } = await server.call("claude_code", { ...start, advanced: { verify } });
  const get = { action: "get", sessionId, includeSensitive: true };
  const [session] = (await server.call("claude_code_session", get)).sessions;
  expect(session).toMatchObject({ sessionId, verify });
});

describe("commands that verify", () => {
  const bash = ["--toolsets", "all", "--allow-rules", "Bash,Write"];

  it("a red command of `verify` fails the turn of `claude_code`, and the commands of a reply replace it for one turn", async () => {
    const server = await world.server({ args: bash });
    const script = (text: string) => scriptTag([{ text }, { text: "I could not repair it." }]);
    const verify = { commands: ["true", "echo broken; exit 4"], attempts: 1 };
    const start = { prompt: script("All is well."), cwd: world.folder(), advanced: { verify }, waitMs: 40_000 };
    const { result, sessionId } = await server.call("claude_code", start);
    expect(result).toMatchObject({
      isError: true,
      errorSubtype: "verification_failed",
      verification: { status: "failed", attempts: 2, of: 2, commands: [{ exit: 0 }, { exit: 4, tail: "broken" }] },
    });
    const reply = { sessionId, prompt: script("Again."), advanced: { verify: ["true"] }, waitMs: 40_000 };
    const passed = { isError: false, verification: { status: "passed", attempts: 1, of: 2 } };
    expect((await server.call("claude_code_reply", reply)).result).toMatchObject(passed);
  });

  it("action `verify` of `claude_code_session` runs `commands`, or those of the session, as a turn", async () => {
    const server = await world.server({ args: bash });
    const cwd = world.folder();
    const prompt = scriptTag([{ text: "Done." }]);
    const { sessionId } = await server.call("claude_code", { prompt, cwd, waitMs: 40_000 });
    const missing = await server.refusal("claude_code_session", { action: "verify", sessionId });
    expect(missing).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining("commands") as string });
    const commands = ["touch ran"];
    const begun = await server.call("claude_code_session", { action: "verify", sessionId, commands });
    expect(begun).toMatchObject({ sessionId, status: "running" });
    const wait = { action: "poll", sessionId, cursor: begun.nextCursor, until: "end", waitMs: 40_000 };
    const { result } = await server.call("claude_code_check", wait);
    expect(result).toMatchObject({ isError: false, verification: { status: "passed" } });
    expect(existsSync(join(cwd, "ran"))).toBe(true);
  });

  it("the operator's commands for a folder verify every session there, and a caller can only replace them", async () => {
    const cwd = world.folder();
    const settings = JSON.stringify([{ folder: cwd, commands: ["exit 5"], attempts: 0 }]);
    const server = await world.server({ args: [...bash, "--verify", settings] });
    const prompt = scriptTag([{ text: "Done." }]);
    const red = { verification: { status: "failed", commands: [{ command: "exit 5", exit: 5 }] } };
    const start = { prompt, cwd, waitMs: 40_000 };
    expect((await server.call("claude_code", start)).result).toMatchObject(red);
    const query = await stream(server, "claude_code_query", { prompt, cwd });
    expect(query).toMatchObject({ isError: false, data: { status: "failed", result: { success: false }, ...red } });
    expect(query.progress.map(({ message }) => message)).toContain("verifying, attempt 1 of 1");
    const own = await server.call("claude_code", { ...start, advanced: { verify: ["true"] } });
    expect(own.result).toMatchObject({ verification: { status: "passed" } });
    for (const verify of [[], false]) {
      const answer = server.refusal("claude_code", { ...start, advanced: { verify } });
      await expect(answer).resolves.toMatchObject({ code: "INVALID_ARGUMENT" });
    }
  });
});
