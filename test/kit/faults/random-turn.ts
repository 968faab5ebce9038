import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Server } from "../servers/stdio-server.ts";
import type { World } from "../world.ts";
import { persistently, wholeLog } from "./shims.ts";

/** A turn of the real Claude Code with all kinds of work that a dying server can interrupt, and a queued prompt after it. */

export interface RandomTurn {
  readonly cwd: string;
  readonly sessionId: string;
}

const STEER = "Mind this as well.";

const note = (at: number, file: string) =>
  `echo "${String(at)} $PPID $(cut -d ' ' -f 22 /proc/$PPID/stat)" >> ${file}; sleep 0.1`;

function scripts(cwd: string) {
  const file = join(cwd, "ran.txt");
  const bash = (at: number) => ({ name: "Bash", input: { command: note(at, file) } });
  const write = (name: string) => ({ name: "Write", input: { file_path: join(cwd, name), content: name } });
  const subagent = scriptTag([{ tools: [bash(10)] }, { text: ["Sub", "agent", " done."], chunkDelayMs: 40 }]);
  const input = { description: "work", subagent_type: "general-purpose", prompt: `Do it. ${subagent}` };
  const spoken = { text: ["Some", " text", " in", " parts."], chunkDelayMs: 40 };
  const turn = [
    { ...spoken, tools: [bash(0), { name: "Agent", input }] },
    { tools: [write("a")] },
    { ...spoken, tools: [bash(1)] },
    { tools: [write("b")] },
    // The end of the subagent is reported in the turn, or starts a turn of its own.
    { text: "done" },
    { text: "done" },
    { text: "done" },
  ];
  return { turn: scriptTag(turn), queued: scriptTag([{ tools: [bash(20)] }, { text: "queued done" }]) };
}

export async function beginTurn(client: Server, world: World): Promise<RandomTurn> {
  const cwd = world.folder();
  const start = { prompt: scripts(cwd).turn, cwd, allowedTools: ["Bash"], sessionInitTimeoutMs: 60_000 };
  const { sessionId } = await client.call("claude_code", start);
  return { cwd, sessionId };
}

/** Queues a prompt, steers, and allows all requests, until nothing runs. Repeated calls are no-ops. */
export async function driveTurn(client: Server, { cwd, sessionId }: RandomTurn): Promise<void> {
  const reply = async (prompt: string, whenBusy: string) =>
    persistently(async () =>
      client.call("claude_code_reply", { sessionId, prompt, whenBusy, idempotencyKey: whenBusy, waitMs: 0 }),
    );
  await reply(scripts(cwd).queued, "queue");
  await reply(STEER, "steer");
  for (;;) {
    const { actions, status } = await persistently(async () =>
      client.call("claude_code_check", { action: "poll", sessionId, waitMs: 5_000 }),
    );
    if (status !== "running" && actions.length === 0) return;
    for (const { requestId } of actions) {
      const answer = { action: "respond_permission", sessionId, requestId, decision: "allow" };
      await client.call("claude_code_check", answer).catch((error: unknown) => {
        // The death of the server may have hit the answer, or the reply to the answer.
        if (!/has ended|REQUEST/.test(String(error))) throw error;
      });
    }
  }
}

/** Expects a single process, each tool run once, each event once and in order, each request answered once, and all results. */
export async function expectWholeTurn(world: World, home: string, turn: RandomTurn): Promise<void> {
  const log = await wholeLog(home, turn.sessionId);
  try {
    check(world, turn, log);
  } catch (cause) {
    const told = log.map(({ event, type }) => `${type} ${event.slice(0, 400)}`).join("\n");
    throw new Error(`${String(cause)}\n${told}`, { cause });
  }
}

type Log = Awaited<ReturnType<typeof wholeLog>>;

function check(world: World, { cwd, sessionId }: RandomTurn, log: Log): void {
  const file = join(cwd, "ran.txt");
  const ran = (existsSync(file) ? readFileSync(file, "utf8") : "")
    .trim()
    .split("\n")
    .map((line) => line.split(" "));
  const numbers = ran.map(([at]) => Number(at));
  expect(numbers.toSorted((a, b) => a - b)).toEqual([0, 1, 10, 20]);
  expect(numbers.filter((at) => at !== 10)).toEqual([0, 1, 20]);
  expect(new Set(ran.map(([, ...who]) => who.join(" "))).size).toBe(1);
  expect(["a", "b"].map((name) => readFileSync(join(cwd, name), "utf8"))).toEqual(["a", "b"]);
  const count = (name: string) => log.filter(({ type }) => type === name).length;
  const names = ["permission.asked", "permission.answered", "process.started"];
  expect(names.map((name) => count(name))).toEqual([2, 2, 1]);
  expect(count("turn.ended")).toBe(count("turn.started"));
  const ends = log.filter(({ type }) => type === "turn.ended").map(({ event }) => event);
  expect(ends.filter((event) => event.includes('"lost"'))).toEqual([]);
  expect(log.some(({ event, type }) => type !== "prompt.queued" && event.includes("queued done"))).toBe(true);
  const steered = world
    .transcript(sessionId)
    .split("\n")
    .filter((line) => line.includes(STEER) && isPrompt(line));
  expect(steered.length).toBe(1);
}

/** True for a transcript line that gives the model a user's text. */
function isPrompt(line: string): boolean {
  const { attachment, type } = JSON.parse(line) as { attachment?: { type: string }; type: string };
  return type === "user" || attachment?.type === "queued_command";
}
