import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { half } from "../kit/runner/amount.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { waitForRequest } from "../kit/faults/driving.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { preloading } from "../kit/servers/preload.ts";
import { useWorld } from "../kit/world.ts";

/** Kills the daemon at exact points of a turn of the real Claude Code (test/kit/faults/kill-daemon.mjs). */

const world = useWorld();
// Closed after each test, because every daemon on a store is woken by writes of the others.
afterEach(async () => world.closeServers());
const KILLER = join(import.meta.dirname, "../kit/faults/kill-daemon.mjs");

const MCP_SERVER = join(import.meta.dirname, "../kit/attach/mcp-server.mjs");

/** Points while Claude Code runs; `handover-start.test.ts` has earlier points. */
const POINTS = [
  "after record",
  "after line",
  "before commit",
  "after commit",
  "before acknowledgement",
  "after acknowledgement",
  "before answer",
  "after answer",
  "before permission",
  "after permission",
  "before prompt",
  "after prompt",
  "before control",
  "after control",
];

interface Case {
  readonly cwd: string;
  /** Each command of the turn appends its number and the process of Claude Code. */
  readonly file: string;
  /** Has an `x` for each killed daemon. */
  readonly mark: string;
}

const note = (at: number, file: string) => `echo "${String(at)} $PPID $(cut -d ' ' -f 22 /proc/$PPID/stat)" >> ${file}`;

function prompt({ file }: Case): string {
  return scriptTag([step(0, file), step(1, file), step(2, file), { text: "done" }]);
}

const step = (at: number, file: string) => ({
  text: `step ${String(at)}`,
  tools: [{ name: "Bash", input: { command: note(at, file) } }],
});

/** Repeats `call` if the daemon died during the call, for up to 60 s. */
async function persistently<T>(call: () => Promise<T>): Promise<T> {
  const end = Date.now() + 60_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!String(error).includes("has ended") || Date.now() > end) throw error;
    }
  }
}

/** Allows all requests until the turn has ended. */
async function drive(client: Server, sessionId: string): Promise<Answer> {
  for (;;) {
    const args = { action: "poll", sessionId, waitMs: 5_000 };
    const { actions, status } = await persistently(async () => client.call("claude_code_check", args));
    if (status !== "running" && actions.length === 0) return persistently(async () => client.end(sessionId, 1));
    for (const { requestId } of actions) {
      const answer = { action: "respond_permission", sessionId, requestId, decision: "allow" };
      await client.call("claude_code_check", answer).catch((error: unknown) => {
        // The daemon may have died before it stored the answer, or before it replied.
        if (!/has ended|REQUEST/.test(String(error))) throw error;
      });
    }
  }
}

/** Connects a client whose daemon dies at the first of `points`, the next daemon at the second point, and so on. */
async function start(points: string): Promise<Case & { readonly client: Server }> {
  const cwd = world.folder();
  const about = { cwd, file: join(cwd, "ran.txt"), mark: join(cwd, "killed") };
  const node = [preloading(KILLER, { KILL_MARK: about.mark, KILL_POINTS: points })];
  return { ...about, client: await world.shared({ node }) };
}

async function run(points: string): Promise<Case & { readonly answer: Answer; readonly sessionId: string }> {
  const { client, ...about } = await start(points);
  const { cwd } = about;
  const model = points.includes("control") ? { model: "haiku" } : {};
  await client.call("claude_code", { prompt: prompt(about), cwd }).catch((error: unknown) => {
    if (!String(error).includes("has ended")) throw error;
  });
  const { sessions } = await persistently(async () => client.call("claude_code_session", { action: "list" }));
  const sessionId = sessions[0]!.sessionId;
  if ("model" in model) {
    await client
      .call("claude_code_session", { action: "set_model", sessionId, ...model })
      .catch((error: unknown) => String(error));
  }
  const answer = await drive(client, sessionId);
  await client.close();
  return { ...about, answer, sessionId };
}

/** Checks that `times` daemons were killed, and that each command, message and answer happened exactly once. */
async function expectWhole({ answer, file, mark, sessionId }: Awaited<ReturnType<typeof run>>, times = 1) {
  expect(existsSync(mark) && readFileSync(mark, "utf8")).toBe("x".repeat(times));
  expect([answer.status, answer.result?.result]).toEqual(["idle", "done"]);
  const ran = readFileSync(file, "utf8").trim().split("\n");
  expect(ran.map((line) => line.split(" ")[0])).toEqual(["0", "1", "2"]);
  expect(new Set(ran.map((line) => line.slice(2))).size).toBe(1);
  const log = await storedEvents(join(world.configFolder, ".."), sessionId);
  expect(log.map(({ id }) => id)).toEqual(log.map((_, at) => at + 1));
  const ofType = (name: string) => log.filter(({ type }) => type === name);
  const messages = ofType("message").flatMap(({ event }) => {
    const { data } = JSON.parse(event) as { data: { message: { uuid?: string } } };
    return data.message.uuid ?? [];
  });
  expect(new Set(messages).size).toBe(messages.length);
  const counts = ["turn.started", "turn.ended", "permission.asked", "permission.answered"].map(
    (name) => ofType(name).length,
  );
  expect(counts).toEqual([1, 1, 3, 3]);
}

it.each(half(POINTS))("a turn is whole when its daemon is killed %s", { timeout: 120_000 }, async (point) => {
  await expectWhole(await run(point));
});

it(
  "a turn is whole when two daemons in a row are killed, the second also right after it has attached",
  { timeout: 120_000 },
  async () => {
    await expectWhole(await run("after answer,after answer"), 2);
    // The next daemon must die at other points.
    await world.closeServers();
    await expectWhole(await run("before commit,after attach"), 2);
  },
);

it(
  "an open elicitation of an MCP server is answered once after a kill of the daemon, and rules from answers still hold",
  { timeout: 120_000 },
  async () => {
    const { client, ...about } = await start("after elicitation");
    const { cwd, file } = about;
    const answers = join(cwd, "answers.txt");
    const mini = { command: process.execPath, args: [MCP_SERVER], env: { ANSWERS: answers } };
    const asking = { tools: [{ name: "mcp__mini__question", input: {} }] };
    const script = scriptTag([step(0, file), asking, step(1, file), step(2, file), { text: "done" }]);
    const given = { prompt: script, cwd, allowedTools: ["mcp__mini__question"], advanced: { mcpServers: { mini } } };
    const { sessionId } = await client.call("claude_code", given);
    const respond = ({ actions: [request] }: Answer, permissionOptions: object) => {
      const answer = { action: "respond_permission", sessionId, requestId: request?.requestId, decision: "allow" };
      return { ...answer, permissionOptions, waitMs: 0 };
    };
    const denying = { type: "addRules", behavior: "deny", rules: [{ toolName: "Bash", ruleContent: "touch *" }] };
    const first = await waitForRequest(client, sessionId);
    await client.call("claude_code_check", respond(first, { updatedPermissions: [denying] }));

    const second = await persistently(async () => waitForRequest(client, sessionId));
    expect(readFileSync(about.mark, "utf8")).toBe("x");
    const changed = respond(second, { updatedInput: { command: `touch ${join(cwd, "sneaked")}` } });
    const refusal = await client.refusal("claude_code_check", changed);
    expect(refusal).toMatchObject({ code: "PERMISSION_DENIED", text: expect.stringContaining("Bash(touch *)") });
    const answer = await drive(client, sessionId);
    await client.close();
    await expectWhole({ ...about, answer, sessionId });
    expect(readFileSync(answers, "utf8")).toBe("decline\n");
  },
);
