import { setImmediate as untilIdle } from "node:timers/promises";
import { invalidArgument, sessionNotFound } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Principal } from "../../domain/principal.ts";
import { statusOf } from "../../domain/session.ts";
import type { FeedItem, SessionBackend } from "../../engine/ports.ts";
import { presentOccurrence } from "../../view/occurrence.ts";
import type { EventParts } from "./parts.ts";

interface Sources {
  readonly store: Pick<SessionBackend, "feed" | "log" | "rows">;
  /** Returns a function that masks the secrets of the session. */
  readonly maskOf: (sessionId: string) => (fields: JsonObject) => JsonObject;
  /** Returns `cwd` as the sessions of the principal record it. */
  readonly folderOf: (principal: Principal, cwd: string) => Promise<string>;
}

/** Returns `present`: an item of the feed has ids only, so row and event are read for each delivery. */
export function createPresent({ maskOf, store: { log, rows } }: Omit<Sources, "folderOf">) {
  return async ({ eventId, name, sessionId }: Pick<FeedItem, "eventId" | "name" | "sessionId">) => {
    const [record, [event]] = await Promise.all([rows.get(sessionId), log.read(sessionId, eventId, 1)]);
    if (!record || event?.id !== eventId) return undefined;
    const session = { id: sessionId, title: record.title ?? record.spec.title, status: statusOf(record.state) };
    return presentOccurrence(name, event, { session, mask: maskOf(sessionId) });
  };
}

/** Creates the parts from the store. */
export function createEventParts({ folderOf, ...sources }: Sources): EventParts {
  const { feed, rows } = sources.store;
  const present = createPresent(sources);
  let turns: Promise<unknown> = Promise.resolve();
  // Reads of a local store wait for nothing, so that a long backlog would hold up every client. Presents one item in each round
  // of the event loop, so that many backlogs hold up no more than one.
  const nextTurn = async () => (turns = turns.then(async () => untilIdle()));
  return {
    feed,
    present: async (item) => {
      await nextTurn();
      return present(item);
    },
    filterOf: async (principal, { cwd, sessionId }) => {
      if (sessionId !== undefined) await checkSession(principal, sessionId, rows);
      return {
        ...(sessionId !== undefined && { sessionId }),
        ...(cwd !== undefined && { cwd: await folderOf(principal, cwd) }),
      };
    },
  };
}

async function checkSession(principal: Principal, sessionId: string, rows: SessionBackend["rows"]): Promise<void> {
  const found = await rows.get(sessionId);
  if (found?.principal !== principal) throw sessionNotFound(sessionId);
  if (found.spec.persistSession !== false) return;
  const problem = "this session leaves no trace (persistSession: false), so it has no events.";
  throw invalidArgument("arguments.sessionId", `${problem} Follow it with claude_code_check.`);
}
