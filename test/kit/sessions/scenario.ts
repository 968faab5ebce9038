import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer, ClientKind, Connection } from "../clients/connection.ts";
import { stream } from "../clients/streaming.ts";
import type { World } from "../world.ts";

/** Task for all toolsets: each must report equal facts about the session. */

const QUESTION = {
  question: "Which colour?",
  header: "Colour",
  multiSelect: false,
  options: [
    { label: "Red", description: "Warm" },
    { label: "Blue", description: "Cold" },
  ],
};

function scenario(cwd: string): string {
  const input = { description: "look", subagent_type: "general-purpose", prompt: scriptTag([{ text: "I looked." }]) };
  return scriptTag([
    {
      thinking: "First I read.",
      text: "I read.",
      tools: [{ name: "Read", input: { file_path: join(cwd, "in.txt") } }],
    },
    { tools: [{ name: "Write", input: { file_path: join(cwd, "out.txt"), content: "x" } }] },
    { tools: [{ name: "AskUserQuestion", input: { questions: [QUESTION] } }] },
    { tools: [{ name: "Bash", input: { command: "echo broken >&2; exit 3" } }] },
    { tools: [{ name: "Agent", input: { ...input, run_in_background: true } }] },
    { text: "The subagent is at work." },
    { text: "All is done." },
  ]);
}

/** Facts about a session that a caller has learned. */
interface Facts {
  finalText: unknown;
  /** Name and success, in the order of the calls. */
  tools: [name: string, success: boolean][];
  costUsd: unknown;
  turns: unknown;
  outcome: unknown;
}

type Learned = Map<string, { name?: string; success?: boolean }>;

function learn(learned: Learned, id: unknown, fact: { name?: string; success?: boolean }): void {
  learned.set(String(id), { ...learned.get(String(id)), ...fact });
}

function learnEvents(learned: Learned, events: Answer["events"]): void {
  for (const { data } of events) {
    if (typeof data["tool"] === "string") learn(learned, data["toolUseId"], { name: data["tool"] });
    if (typeof data["ok"] === "boolean") learn(learned, data["toolUseId"], { success: data["ok"] });
  }
}

interface Block {
  type: string;
  id?: string;
  name?: string;
  tool_use_id?: string;
  is_error?: boolean;
}

function learnMessages(learned: Learned, messages: unknown): void {
  const spoken = messages as { message?: { content?: Block[] } }[];
  for (const { content } of spoken.flatMap(({ message }) => message ?? [])) {
    for (const block of Array.isArray(content) ? content : []) {
      if (block.type === "tool_use") learn(learned, block.id, { name: block.name ?? "" });
      if (block.type === "tool_result") learn(learned, block.tool_use_id, { success: block.is_error !== true });
    }
  }
}

function learnInvocations(learned: Learned, invocations: unknown): void {
  for (const { name, success, toolUseId } of invocations as { toolUseId: string; name: string; success?: boolean }[]) {
    learn(learned, toolUseId, { name, ...(success !== undefined && { success }) });
  }
}

/** Mode that reports each message separately, with the ids of its calls. */
const SHORT = { responseMode: "delta_compact" };

/** Answers requests with `claude_code_check` until no turn runs, whichever tool has started the turn. */
async function answerAll(server: Connection, asked: Answer, learned: Learned): Promise<Answer> {
  let now = asked;
  for (let cursor = asked.nextCursor; now.actions.length > 0; cursor = now.nextCursor) {
    const [{ requestId, type } = { requestId: "", type: "" }] = now.actions;
    const answer =
      type === "question"
        ? { action: "answer_question", answers: { "Which colour?": "Blue" } }
        : { action: "respond_permission", decision: "allow" };
    now = await server.call("claude_code_check", {
      ...answer,
      sessionId: asked.sessionId,
      requestId,
      cursor,
      ...SHORT,
    });
    learnEvents(learned, now.events);
  }
  return now;
}

function factsOf({ result, status }: Answer, learned: Learned): Facts {
  return {
    finalText: result?.result,
    tools: [...learned.values()].map(({ name = "?", success = false }) => [name, success]),
    costUsd: result?.totalCostUsd,
    turns: result?.numTurns,
    outcome: status,
  };
}

/** Connections of the caller, which may be to different servers of a store. */
interface Caller {
  /** Used for the first call, which starts the session. */
  readonly first: Connection;
  /** Used for all later calls. */
  readonly later: Connection;
}

interface Start {
  readonly prompt: string;
  readonly cwd: string;
  /** Options of the toolset `agent`. */
  readonly advanced?: object | undefined;
}

type Drive = (caller: Caller, start: Start) => Promise<Facts>;
const ALLOWED = ["Read", "Bash"];

const DRIVES = {
  agent: async ({ first, later }, start) => {
    const learned: Learned = new Map();
    const { sessionId } = await first.call("claude_code", { ...start, allowedTools: ALLOWED });
    const asked = await later.call("claude_code_check", { action: "poll", sessionId, waitMs: 40_000, ...SHORT });
    learnEvents(learned, asked.events);
    return factsOf(await answerAll(later, asked, learned), learned);
  },
  query: async ({ first, later }, { cwd, prompt }) => {
    const learned: Learned = new Map();
    const args = { prompt, cwd, allowedTools: ALLOWED, permissionMode: "default" };
    const { data } = await stream(first, "claude_code_query", args);
    learnMessages(learned, data["messages"]);
    return factsOf(await answerAll(later, data as unknown as Answer, learned), learned);
  },
  chat: async ({ first, later }, { cwd, prompt }) => {
    const learned: Learned = new Map();
    const { sessionId } = (await stream(first, "claude_session_create", { cwd })).data;
    const { data } = await stream(later, "claude_chat_query", { sessionId, prompt });
    learnInvocations(learned, data["toolInvocations"]);
    return factsOf(await answerAll(later, data as unknown as Answer, learned), learned);
  },
} satisfies Record<string, Drive>;

export type Toolset = keyof typeof DRIVES;
export const TOOLSETS = Object.keys(DRIVES) as Toolset[];

/** Kind of client for each toolset in `npm test`, with the real Claude Code over stdio. */
export const SHOWN_OVER: Readonly<Record<"stdio" | "http", Readonly<Record<Toolset, ClientKind>>>> = {
  stdio: { agent: "modern", query: "legacy", chat: "v1" },
  http: { agent: "legacy", query: "modern", chat: "v1" },
};

/** Flags of a server that offers all toolsets. */
export const SCENARIO_ARGS = ["--toolsets", TOOLSETS.join(",")];

/** Cost reported by the first run of each world: all other runs must report an equal cost. */
const costs = new WeakMap<World, number>();

interface Elsewhere extends Pick<Start, "advanced"> {
  /** Connection for all calls but the first. Default: the connection of the first. */
  readonly later?: Connection;
}

/** Plays the task through `toolset`; expects that all facts are reported. */
export async function expectSameFacts(
  world: World,
  first: Connection,
  toolset: Toolset,
  { advanced, later = first }: Elsewhere = {},
): Promise<void> {
  const cwd = world.folder();
  writeFileSync(join(cwd, "in.txt"), "content");
  const facts = await DRIVES[toolset]({ first, later }, { prompt: scenario(cwd), cwd, advanced });
  const cost = costs.get(world) ?? Number(facts.costUsd);
  costs.set(world, cost);
  expect(cost).toBeGreaterThan(0);
  expect(existsSync(join(cwd, "out.txt"))).toBe(true);
  expect(facts).toEqual({
    finalText: "All is done.",
    tools: [
      ["Read", true],
      ["Write", true],
      ["AskUserQuestion", true],
      ["Bash", false],
      ["Agent", true],
    ],
    costUsd: expect.closeTo(cost, 9) as number,
    turns: 7,
    outcome: "idle",
  });
}
