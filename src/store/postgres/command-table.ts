import { z } from "zod";
import type { CommandReply } from "../../domain/command.ts";
import { type Lease, NoAnswerError } from "../../engine/ports.ts";
import { EXPIRED_MS, MAX_REPLIES, type NextCommand, readCommand } from "../command-reading.ts";
import { ReplyRow } from "../rows.ts";
import type { Database } from "./connect/database.ts";

/** A crash of the database may lose a command before it is answered: its sender then sends again. */
const RELAXED = "set_config('synchronous_commit', 'off', true) AS relaxed";

/** True for the session, locked against claims until the transaction ends. */
const HELD = "SELECT id FROM sessions WHERE id = $1 AND owner = $2 AND epoch = $3";

const sql = {
  post: `WITH session AS (SELECT 1 FROM sessions WHERE id = $1),
    wait AS MATERIALIZED (SELECT now_ms() + $4 AS until),
    known AS (SELECT reply FROM commands WHERE session_id = $1 AND id = $2 AND reply IS NOT NULL),
    expired AS (DELETE FROM commands WHERE session_id = $1 AND reply IS NULL AND id <> $2
      AND expires_at < now_ms() - ${String(EXPIRED_MS)}),
    posted AS (INSERT INTO commands(session_id, id, data, expires_at)
      SELECT $1, $2, $3, until FROM session, wait WHERE NOT EXISTS (SELECT 1 FROM known)
      ON CONFLICT(session_id, id) DO UPDATE SET expires_at = greatest(commands.expires_at, excluded.expires_at)
        WHERE commands.reply IS NULL
      RETURNING expires_at)
    SELECT (SELECT count(*) FROM session) AS sessions, (SELECT reply FROM known) AS reply,
      (SELECT until FROM wait) AS "expiresAt",
      (SELECT count(*) FROM posted) AS posted, ${RELAXED}`,
  reply: `SELECT c.reply FROM (SELECT 1 FROM sessions WHERE id = $1) s
    LEFT JOIN commands c ON c.session_id = $1 AND c.id = $2`,
  withdraw: `WITH gone AS (DELETE FROM commands WHERE session_id = $1 AND id = $2 AND reply IS NULL AND expires_at <= $3)
    SELECT reply, ${RELAXED} FROM commands WHERE session_id = $1 AND id = $2`,
  next: `SELECT c.id, c.data FROM (${HELD}) s LEFT JOIN LATERAL (SELECT id, data FROM commands
      WHERE session_id = $1 AND reply IS NULL AND expires_at > now_ms() AND id <> ALL($4::text[]) ORDER BY n LIMIT 1) c
    ON true`,
  answer: `WITH held AS (${HELD} FOR SHARE),
    answered AS (INSERT INTO commands(session_id, id, data, expires_at, reply) SELECT $1, $4, '', 0, $5 FROM held
      ON CONFLICT(session_id, id) DO UPDATE SET reply = excluded.reply, data = '' WHERE commands.reply IS NULL
      RETURNING n),
    forgotten AS (DELETE FROM commands WHERE session_id = $1 AND reply IS NOT NULL AND EXISTS (SELECT 1 FROM answered)
      AND n <= (SELECT n FROM commands WHERE session_id = $1 AND reply IS NOT NULL
        ORDER BY n DESC OFFSET ${String(MAX_REPLIES - 1)} LIMIT 1))
    SELECT 1 FROM answered`,
} as const;

/** A command, as its sender has it. */
export interface SentCommand {
  readonly sessionId: string;
  readonly id: string;
}

const Posted = z.object({ sessions: z.int(), expiresAt: z.int(), ...ReplyRow.shape });

/**
 * Posts a command for the owner to find. A command already posted waits for the last of its senders. Returns the answer if there
 * is one, and the time until which the command waits. Throws `NoAnswerError` if there is no session.
 */
export async function sendCommand(
  db: Database,
  { data, id, sessionId, timeoutMs }: SentCommand & { readonly data: string; readonly timeoutMs: number },
): Promise<{ reply: CommandReply | undefined; expiresAt: number }> {
  const found = await db.get(sql.post, Posted, [sessionId, id, data, timeoutMs]);
  if (!found || found.sessions === 0) throw new NoAnswerError(`there is no session ${sessionId} to answer`);
  return { reply: found.reply ?? undefined, expiresAt: found.expiresAt };
}

/** Throws `NoAnswerError` if there is no session any more. */
export async function readReply(db: Database, { id, sessionId }: SentCommand): Promise<CommandReply | undefined> {
  const found = await db.get(sql.reply, ReplyRow, [sessionId, id], { patience: "reader" });
  if (!found) throw new NoAnswerError(`there is no session ${sessionId} to answer`);
  return found.reply ?? undefined;
}

/** Drops the command of a sender who has given up, unless another sender waits longer. Returns an answer of the last moment. */
export async function dropCommand(
  db: Database,
  { expiresAt, id, sessionId }: SentCommand & { readonly expiresAt: number },
): Promise<CommandReply | undefined> {
  return (await db.get(sql.withdraw, ReplyRow, [sessionId, id, expiresAt]))?.reply ?? undefined;
}

const NextRow = z.object({ id: z.string().nullable(), data: z.unknown() });

/** Returns the oldest unanswered command that is not in hand; `undefined` if the lease is lost. */
export async function findNextCommand(
  db: Database,
  { epoch, nodeId, sessionId }: Lease,
  inHand: ReadonlySet<string>,
): Promise<NextCommand[] | undefined> {
  const row = await db.get(sql.next, NextRow, [sessionId, nodeId, epoch, [...inHand]], { patience: "reader" });
  if (!row) return undefined;
  return row.id === null ? [] : [{ id: row.id, ...readCommand(row.data) }];
}

/**
 * Stores the first answer only. Keeps the answer for a retry after the sender has given up, and drops the command (a prompt,
 * images).
 */
export async function storeReply(db: Database, lease: Lease, id: string, reply: CommandReply): Promise<void> {
  const { epoch, nodeId, sessionId } = lease;
  await db.run(sql.answer, [sessionId, nodeId, epoch, id, JSON.stringify(reply)]);
}
