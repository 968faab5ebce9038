import { publicView } from "../../tools/agent/session/session-fields.ts";
import { invalidArgument } from "../../domain/error.ts";
import { statusOf } from "../../domain/session.ts";
import { waitingField } from "../../domain/standstill.ts";
import type { ToolDeps } from "../../tools/define.ts";
import { assembleCheck } from "../../view/check.ts";
import { readShown } from "../../tools/check/events.ts";
import { readRequest } from "../../tools/check/request.ts";
import { readableSession } from "../../tools/readable-session.ts";
import type { ReadingCaller, SessionDocument } from "./resource.ts";

const [EVENTS, MAX_EVENTS] = [100, 1_000];
/** Maximum bytes of JSON in a page of events. */
const EVENTS_BYTES = 32_768;

export const session: SessionDocument = {
  uriTemplate: "claude-code://sessions/{id}",
  path: "",
  name: "session",
  title: "A session",
  description: "State of a session: status, open requests, totals; as returned by claude_code_session (get).",
  mimeType: "application/json",
  async read(sessionId, query, caller, { engine }) {
    readNumbers(query, {});
    return JSON.stringify(publicView(await engine.get(caller.principal, sessionId)));
  },
};

export const sessionEvents: SessionDocument = {
  uriTemplate: "claude-code://sessions/{id}/events{?cursor,limit}",
  path: "/events",
  name: "session-events",
  title: "Events of a session",
  description: `The events of a session from cursor (default 1), at most limit (default ${String(EVENTS)}). Continue with nextCursor.`,
  mimeType: "application/json",
  async read(sessionId, query, reading, deps) {
    const { cursor = 1, limit = EVENTS } = readNumbers(query, {
      cursor: Number.MAX_SAFE_INTEGER,
      limit: MAX_EVENTS,
    });
    return JSON.stringify(await readEvents(sessionId, { cursor, limit }, reading, deps));
  },
};

async function readEvents(
  sessionId: string,
  { cursor, limit }: { cursor: number; limit: number },
  reading: ReadingCaller,
  deps: ToolDeps,
) {
  const client = { elicitation: false, tasks: false } as const;
  const call = { ...reading, client, resumeState: undefined, inputResponses: {} };
  const view = readableSession(sessionId, call, deps);
  const { state } = await view.record();
  const last = { eventId: null, result: undefined };
  const { form } = readRequest({ responseMode: "delta_compact" }, deps.limits);
  const read = await readShown(view, { from: cursor, upTo: state.lastEventId, maxEvents: limit }, form, last);
  const { resetTo } = read;
  const { answer } = assembleCheck(
    {
      form,
      lists: {},
      head: {
        sessionId,
        status: statusOf(state),
        ...waitingField(state),
        ...(resetTo !== undefined && { cursorResetTo: resetTo }),
      },
      tail: { lastEventId: state.lastEventId },
      events: read.events,
      end: read.next,
      more: read.next <= state.lastEventId,
      asked: [],
      result: undefined,
      resultEventId: null,
      now: deps.now(),
    },
    EVENTS_BYTES,
  );
  return answer;
}

/** Parses whole numbers from 1 to `most[name]`. Throws `INVALID_ARGUMENT`. */
function readNumbers(query: URLSearchParams, most: Readonly<Record<string, number>>): Record<string, number> {
  const read: Record<string, number> = {};
  for (const [name, text] of query) {
    const limit = most[name];
    if (limit === undefined) throw invalidArgument(name, "is not a parameter of this resource.");
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= 1 && value <= limit)) {
      throw invalidArgument(name, `must be a whole number from 1 to ${String(limit)}, not ${JSON.stringify(text)}.`);
    }
    read[name] = value;
  }
  return read;
}
