import type { RequestRecord } from "../../../src/demo/model/server.ts";
import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer } from "../clients/connection.ts";
import type { Server } from "../servers/stdio-server.ts";
import type { World } from "../world.ts";

type Script = Parameters<typeof scriptTag>[0];

/** Starts a session with `script`; resolves with all events once its turn has ended or a request is open. */
export async function runScript(server: Pick<Server, "call">, script: Script, options: object): Promise<Answer> {
  const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), ...options, waitMs: 40_000 });
  return readWholeLog(server, sessionId);
}

/** Returns the whole log of a session so far. */
export async function readWholeLog(server: Pick<Server, "call">, sessionId: string): Promise<Answer> {
  const whole = { responseMode: "delta_compact", maxBytes: 262_144 };
  return server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0, ...whole });
}

/** Returns model requests of a session's main conversation in order, or those of its `subagents`. */
export function requestsOf(world: World, sessionId: string, subagents = false): RequestRecord[] {
  return world.model.requests.filter((each) => each.sessionId === sessionId && each.subagent === subagents);
}

/** Returns the data of events that have a field `kind`. */
export function dataOfKind({ events }: Pick<Answer, "events">, kind: string): unknown[] {
  return events.flatMap(({ data }) => (kind in data ? [data[kind]] : []));
}

/** Waits until the log has an event with a field `kind`. */
export async function waitForKind(server: Pick<Server, "call">, sessionId: string, kind: string): Promise<unknown[]> {
  let cursor = 1;
  for (;;) {
    const next = { action: "poll", sessionId, cursor, until: "event", waitMs: 45_000 };
    const answer = await server.call("claude_code_check", next);
    const found = dataOfKind(answer, kind);
    if (found.length > 0) return found;
    if (answer.events.length === 0) throw new Error(`no ${kind} came`);
    cursor = answer.nextCursor;
  }
}
