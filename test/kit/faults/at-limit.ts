import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { z } from "zod";

import { type Script, scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer } from "../clients/connection.ts";
import { constants, merged } from "../servers/constants.ts";
import type { Server } from "../servers/stdio-server.ts";
import { requestsOf } from "../sessions/one-turn.ts";
import { createWorld, type World } from "../world.ts";
import { homeOf, persistently, wholeLog } from "./shims.ts";

/** Turns of the real Claude Code that the API refuses at a limit of the plan, and what must be true of each. */

export interface LimitedTurn {
  readonly world: World;
  readonly cwd: string;
  readonly client: Server;
  readonly sessionId: string;
  /** Number of tool calls before the refusal. */
  readonly calls: number;
}

interface Begin {
  readonly client: Server;
  readonly calls?: number;
  /** Entries in place of the answer to the refused request. */
  readonly refusals: Script;
  /** Entries after the refusal. Default: a tool call and a text. */
  readonly after?: Script;
  readonly onLimit?: "report" | "wait";
  readonly onLost?: "resume" | undefined;
}

/** Begins the prompt, which no other text of these tests contains. */
const MARK = "Work as described.";
export const WENT_ON = "I went on.";

/** Tool call number `at`, from 1. Each tells that it ran. */
export const call = (at: number) => ({
  tools: [{ name: "Bash", input: { command: `echo ${String(at)} >> ran`, description: "Note" } }],
});

/** Refusal at a window that resets in `resetsInS`. */
export const refusal = (resetsInS: number, claim = "five_hour") => ({
  error: { status: 429 as const, plan: { claim, resetsInS } },
});

/** Runs a test in a world of its own, so that tests at a time neither share an account nor a daemon. Nothing may be left. */
export async function inOwnWorld(test: (world: World) => Promise<void>): Promise<void> {
  const world = await createWorld({ plan: true });
  try {
    await test(world);
  } finally {
    await world.close();
  }
  expect(world.daemons()).toEqual([]);
}

/** Makes a server go on soon after a reset. */
export const SOON = constants({ limitMarginMs: 200 });

/** Connects a client of a daemon. */
export async function connected(
  world: World,
  { env = {}, ...options }: Parameters<World["shared"]>[0] = {},
): Promise<Server> {
  return world.shared({ ...options, env: merged(SOON, env) });
}

/** Starts the turn. Its daemon may die meanwhile. */
export async function begin(
  world: World,
  { calls = 1, client, onLost, onLimit = "wait", ...how }: Begin,
): Promise<LimitedTurn> {
  const cwd = world.folder();
  const { refusals, after = [call(calls + 1), { text: WENT_ON }] } = how;
  const before = Array.from({ length: calls }, (_, at) => call(at + 1));
  const prompt = `${MARK} ${scriptTag([...before, ...refusals, ...after])}`;
  const start = { prompt, cwd, allowedTools: ["Bash"], advanced: { onLimit, ...(onLost && { onLost }) } };
  const started = await client.call("claude_code", start).catch((error: unknown) => {
    if (!String(error).includes("has ended")) throw error;
  });
  if (started) return { world, cwd, client, calls, sessionId: started.sessionId };
  const { sessions } = await persistently(async () => client.call("claude_code_session", { action: "list" }));
  return { world, cwd, client, calls, sessionId: sessions[0]!.sessionId };
}

const Wait = z.object({ kind: z.string(), window: z.string().optional(), until: z.string().optional() });

/** Returns the session as `get` shows it. */
export async function shown({ client, sessionId }: Pick<LimitedTurn, "client" | "sessionId">) {
  const get = async () => client.call("claude_code_session", { action: "get", sessionId });
  const [session] = (await persistently(get)).sessions;
  return { session, waiting: Wait.optional().parse(session?.["waiting"]) };
}

/** Resolves with the wait once the session waits as in `like`. */
export async function untilWaiting(
  turn: Pick<LimitedTurn, "client" | "sessionId">,
  like: object = { kind: "usage_limit" },
): Promise<z.infer<typeof Wait>> {
  return vi.waitFor(
    async () => {
      const { waiting } = await shown(turn);
      expect(waiting).toMatchObject(like);
      return Wait.parse(waiting);
    },
    { timeout: 40_000, interval: 100 },
  );
}

/** Resolves with the end of the turn, however many daemons die before. */
export async function ended({ client, sessionId }: Pick<LimitedTurn, "client" | "sessionId">): Promise<Answer> {
  return persistently(async () => client.end(sessionId, 1));
}

/** Expects that a turn is done, or lost with advice. */
export function expectEnd({ result, status }: Answer, how: "done" | "lost"): void {
  if (how === "done") expect([status, result?.result]).toEqual(["idle", WENT_ON]);
  else {
    expect([status, result?.errorSubtype]).toEqual(["error", "lost"]);
    expect(result?.result).toMatch(/send a prompt to go on|Reply to/);
  }
}

interface Expected {
  /** Number of times that the refused request was sent again, or the most if the turn may be lost. */
  readonly again?: number;
  /** True if the turn may have ended before its last tool call. */
  readonly isLost?: boolean;
}

/** Expects that the model received the refused request again as often as expected, and never the prompt or another text. */
export async function expectOnce(turn: LimitedTurn, { again = 1, isLost = false }: Expected = {}): Promise<void> {
  const { calls, cwd, sessionId, world } = turn;
  const requests = requestsOf(world, sessionId);
  const [refused, ...later] = requests.slice(calls);
  const sent = later.filter(({ digest }) => digest === refused?.digest).length;
  // The others follow tool calls: after the refused request there is no further text of a user.
  for (const { lastUserText, told } of later) {
    expect(lastUserText).toBe(refused?.lastUserText);
    expect(told.split(MARK)).toHaveLength(2);
  }
  expect(later.slice(0, sent).every(({ digest }) => digest === refused?.digest)).toBe(true);
  expect(texts(turn)).toHaveLength(1);
  const file = join(cwd, "ran");
  const ran = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  const all = Array.from({ length: calls + 1 }, (_, at) => String(at + 1));
  const log = await wholeLog(homeOf(world), sessionId);
  const count = (name: string) => log.filter(({ type }) => type === name).length;
  expect([count("turn.started"), count("turn.ended")]).toEqual([1, 1]);
  if (isLost) {
    expect(sent).toBeLessThanOrEqual(again);
    expect(all.slice(0, ran.length)).toEqual(ran);
    return;
  }
  expect(sent).toBe(again);
  expect(requests).toHaveLength(calls + 1 + again + 1);
  expect(ran).toEqual(all);
}

const Entry = z.looseObject({
  type: z.string(),
  message: z.looseObject({ content: z.unknown() }).optional(),
});

/** Texts of the user in Claude Code's transcript. */
function texts({ sessionId, world }: LimitedTurn): string[] {
  const lines = world.transcript(sessionId).split("\n");
  return lines.filter((line) => {
    if (line === "") return false;
    const { message, type } = Entry.parse(JSON.parse(line));
    return type === "user" && !JSON.stringify(message?.content).includes('"tool_result"');
  });
}
