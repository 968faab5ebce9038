import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type Script, scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer, Connection } from "../clients/connection.ts";
import { readWholeLog } from "../sessions/one-turn.ts";
import type { World } from "../world.ts";
import { journal, overlapMs, repeated, writing } from "./journal.ts";

/** A session whose tool calls write to a file of all machines. */
export interface Written {
  readonly sessionId: string;
  /** File of its tool calls. */
  readonly file: string;
}

interface Start {
  readonly world: World;
  /** Folder in which the session gets a folder of its own. */
  readonly below: string;
  /** Folder of the file, on all machines. Default: the session's. */
  readonly filesIn?: string;
  readonly advanced?: object;
}

/** Starts a session whose first turn follows the script that `script` returns for the file. */
async function start(client: Connection, { advanced, below, filesIn }: Start, script: (file: string) => Script) {
  const cwd = mkdtempSync(join(below, "work-"));
  const file = filesIn === undefined ? join(cwd, "journal") : join(mkdtempSync(join(filesIn, "of-")), "journal");
  const begin = { prompt: scriptTag(script(file)), cwd, allowedTools: ["Bash"], advanced };
  const { sessionId } = await client.call("claude_code", begin);
  return { sessionId, file };
}

const atGate = (file: string, call: string, gate: string): Script => [
  writing(file, call, 2),
  { gateBefore: gate, text: "Done." },
];

/** Resolves when the call `call` has run and the model is asked for the next step. */
async function untilAtGate({ model }: World, { sessionId }: Written): Promise<void> {
  const isNext = (served: object) => "entry" in served && served.entry === 1;
  await model.waitForRequest((request) => request.sessionId === sessionId && isNext(request.served));
}

/** Starts a session whose first turn has run the call `one`, and waits for the model at `gate`. */
export async function startAtGate(client: Connection, from: Start, gate: string): Promise<Written> {
  const written = await start(client, from, (file) => atGate(file, "one", gate));
  await untilAtGate(from.world, written);
  return written;
}

/** Starts a session whose first turn runs the call `one` for a minute. */
export async function startLongCall(client: Connection, from: Start): Promise<Written> {
  const written = await start(client, from, (file) => [writing(file, "one", 1_200), { text: "Done." }]);
  await expect.poll(() => journal(written.file).length).toBeGreaterThan(2);
  return written;
}

/** Starts a session whose first turn has run the call `one` and ended. */
export async function startWhole(client: Connection, from: Start): Promise<Written> {
  const written = await start(client, from, (file) => [writing(file, "one", 1), { text: "After one." }]);
  expect(await client.end(written.sessionId)).toMatchObject({ status: "idle", result: { result: "After one." } });
  return written;
}

/** Prompts the session with a turn that runs `call`, which writes `lines` lines. Resolves after `waitMs`, or the turn. */
export async function goOn(
  client: Connection,
  { file, sessionId }: Written,
  call: string,
  { lines = 2, waitMs = 40_000 }: { readonly lines?: number; readonly waitMs?: number } = {},
): Promise<Answer> {
  const prompt = `${call}? ${scriptTag([writing(file, call, lines), { text: `After ${call}.` }])}`;
  return client.call("claude_code_reply", { sessionId, prompt, waitMs });
}

/** The answer to `goOn` after the turn. */
export const wentOn = (call: string) => ({ status: "idle", result: { isError: false, result: `After ${call}.` } });

export const LOST = { status: "error", result: { isError: true, errorSubtype: "lost" } };

/** Expects that each of `calls` ran once, in this order, and that no two machines ran calls at once for longer than `ms`. */
export function expectCalls({ file }: Written, calls: readonly string[], ms = 0): void {
  const lines = journal(file);
  expect([...new Set(lines.map(({ call }) => call))]).toEqual(calls);
  expect(repeated(lines)).toEqual([]);
  expect(overlapMs(lines)).toBeLessThanOrEqual(ms);
}

/** Expects that the log has an end for each turn: "ok", or its `errorSubtype`. */
export async function expectEnds(client: Connection, { sessionId }: Written, ends: readonly string[]): Promise<void> {
  const { events } = await readWholeLog(client, sessionId);
  const found = events.filter(({ type }) => type === "result" || type === "error");
  expect(found.map(({ data }) => data["errorSubtype"] ?? "ok")).toEqual(ends);
}
