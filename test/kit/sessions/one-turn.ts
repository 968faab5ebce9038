import type { RequestRecord } from "../../../src/demo/model/server.ts";
import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer } from "../clients/connection.ts";
import type { Server } from "../servers/stdio-server.ts";
import type { World } from "../world.ts";

type Script = Parameters<typeof scriptTag>[0];

/** Starts a session on the script, and resolves with all events once its turn has ended or a request is open. */
export async function play(server: Pick<Server, "call">, script: Script, options: object): Promise<Answer> {
  const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), ...options, waitMs: 40_000 });
  return told(server, sessionId);
}

/** The whole log of a session so far. */
export async function told(server: Pick<Server, "call">, sessionId: string): Promise<Answer> {
  const whole = { responseMode: "delta_compact", maxBytes: 262_144 };
  return server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0, ...whole });
}

/** Requests to the model by the main conversation of a session, in order, or by its `subagents`. */
export function requestsOf(world: World, sessionId: string, subagents = false): RequestRecord[] {
  return world.model.requests.filter((each) => each.sessionId === sessionId && each.subagent === subagents);
}

/** The data of the events of this kind. */
export function ofKind({ events }: Pick<Answer, "events">, kind: string): unknown[] {
  return events.flatMap(({ data }) => (kind in data ? [data[kind]] : []));
}

/** Waits until the log of a session has an event of this kind. */
export async function hear(server: Pick<Server, "call">, sessionId: string, kind: string): Promise<unknown[]> {
  let cursor = 1;
  for (;;) {
    const next = { action: "poll", sessionId, cursor, until: "event", waitMs: 45_000 };
    const answer = await server.call("claude_code_check", next);
    const found = ofKind(answer, kind);
    if (found.length > 0) return found;
    if (answer.events.length === 0) throw new Error(`no ${kind} came`);
    cursor = answer.nextCursor;
  }
}
