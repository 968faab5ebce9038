import { z } from "zod";
import type { CommandReply } from "../../domain/command.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { SessionRecord } from "../../engine/ports.ts";
import { EVENT, type Format, OPTIONS, POLICY, STATE } from "../format.ts";
import { NodeRow } from "../node.ts";

/**
 * Rows as they come from the database. What stands in them as JSON is not checked against today's schemas: format.ts
 * says why, and what is.
 */

/** Text that a store has written: what comes out has the type of what went in. */
function json<T>() {
  const parse: (text: string) => T = JSON.parse;
  return z.string().transform((text) => parse(text));
}

/** The same, in the format version of the server that wrote it. */
function stored<T>(format: Format<T>) {
  return z.string().transform((text) => format.read(text));
}

/** A session with the node that owns it; null throughout without an owner. */
export const SessionRow = z.object({
  ...NodeRow.shape,
  nodeId: z.string().nullable(),
  id: z.string(),
  principal: json<string>(),
  spec: stored(OPTIONS),
  policy: stored(POLICY).nullable(),
  state: stored(STATE),
  title: json<string>().nullable(),
  createdAt: z.int(),
  updatedAt: z.int(),
  rev: z.int(),
});
export type SessionRow = z.infer<typeof SessionRow>;

export function recordOf(row: SessionRow, owner: SessionRecord["owner"]): SessionRecord {
  const { id, principal, spec, policy, state, title, createdAt, updatedAt, rev } = row;
  return {
    id,
    principal,
    spec,
    policy: policy ?? undefined,
    state,
    title: title ?? undefined,
    createdAt,
    updatedAt,
    rev,
    owner,
  };
}

export const EventRow = z
  .object({ id: z.int(), at: z.int(), event: stored(EVENT) })
  .transform(({ at, event, id }): StoredEvent => ({ ...event, id, at }));

export const PrincipalRow = z.object({ principal: json<string>() });

export const ReplyRow = z.object({ reply: json<CommandReply>().nullable() });
