import { z } from "zod";
import type { FeedName } from "../../domain/feed.ts";
import type { JsonObject } from "../../domain/json.ts";
import { FILTERS } from "./asked.ts";

/** Descriptions of the events, for `events/list`. */

/** Mode of delivery. */
export type Delivery = "poll" | "push" | "webhook";

interface EventType {
  readonly description: string;
  /** Fields of the payload by name, besides the common ones. */
  readonly fields: Readonly<Record<string, string>>;
}

const COMMON = {
  sessionId: "Id of the session, for every tool",
  status: "Status of the session: running, waiting_permission, idle, error, cancelled or closed",
  title: "Title of the session, if it has one",
};

const LINE = "One line for people, at most 200 characters";

const TYPES: Readonly<Record<FeedName, EventType>> = {
  "turn.ended": {
    description: "A turn of Claude Code has ended, with or without success. Read its result with claude_code_check.",
    fields: {
      turnId: "Id of the turn",
      outcome: "done, failed, interrupted, lost or cancelled",
      errorSubtype: "Kind of the failure",
      text: LINE,
    },
  },
  "answer.needed": {
    description: "A permission request or a question waits for an answer. Answer it with claude_code_check.",
    fields: { requestId: "Id of the request", toolName: "Tool that Claude Code wants to use", text: LINE },
  },
  "session.waits": {
    description: "The work of a session waits for the end of a limit, a slot, a client or a node.",
    fields: { text: LINE },
  },
  "verification.ended": {
    description: "The commands that verify a turn have ended.",
    fields: { turnId: "Id of the turn", verification: "passed, failed or another result of the verification" },
  },
};

const INPUT_SCHEMA = z.toJSONSchema(z.strictObject(FILTERS), { io: "input" });

/** Answers `events/list`. `delivery`: modes that this server offers to the caller. */
export function listEvents(delivery: readonly Delivery[]): JsonObject {
  const events = Object.entries(TYPES).map(([name, { description, fields }]) => ({
    name,
    description,
    delivery,
    inputSchema: INPUT_SCHEMA,
    payloadSchema: payloadSchema({ ...COMMON, ...fields }),
  }));
  return { events };
}

function payloadSchema(fields: Readonly<Record<string, string>>): JsonObject {
  const properties = Object.entries(fields).map(([name, description]) => [name, { type: "string", description }]);
  return { type: "object", properties: Object.fromEntries(properties), required: ["sessionId", "status"] };
}
