import { z } from "zod";
import type { CommandReply } from "../../domain/command.ts";
import type { Lease } from "../../engine/ports.ts";
import { EXPIRED_MS, MAX_REPLIES, type NextCommand, readCommand } from "../command-reading.ts";
import type { Connection } from "./connect/connection.ts";
import { isHeld } from "./leases.ts";
import { ReplyRow } from "../rows.ts";

const sql = {
  reply: "SELECT reply FROM commands WHERE session_id = $sessionId AND id = $id",
  post: `INSERT INTO commands(session_id, id, data, expires_at) VALUES($sessionId, $id, $data, $expiresAt)
    ON CONFLICT(session_id, id) DO UPDATE SET expires_at = max(expires_at, excluded.expires_at) WHERE reply IS NULL`,
  expire: "DELETE FROM commands WHERE session_id = $sessionId AND reply IS NULL AND expires_at < $before",
  withdraw: `DELETE FROM commands
    WHERE session_id = $sessionId AND id = $id AND reply IS NULL AND expires_at <= $expiresAt`,
  open: `SELECT id, data FROM commands
    WHERE session_id = $sessionId AND reply IS NULL AND expires_at > $now ORDER BY n LIMIT $limit`,
  answer: `INSERT INTO commands(session_id, id, data, expires_at, reply) VALUES($sessionId, $id, '', 0, $reply)
    ON CONFLICT(session_id, id) DO UPDATE SET reply = excluded.reply, data = '' WHERE reply IS NULL`,
  forget: `DELETE FROM commands WHERE session_id = $sessionId AND reply IS NOT NULL AND n <=
    (SELECT n FROM commands WHERE session_id = $sessionId AND reply IS NOT NULL ORDER BY n DESC LIMIT 1 OFFSET ${String(MAX_REPLIES)})`,
} as const;

/** Command of a sender who waits for the answer until `expiresAt`. */
export interface PostedCommand {
  readonly sessionId: string;
  readonly id: string;
  readonly data: string;
  readonly expiresAt: number;
}

/** Posts a command for the owner to find. A command already posted waits for the last of its senders. */
export function postCommand(db: Connection, posting: PostedCommand, now: number): void {
  db.run(sql.expire, { sessionId: posting.sessionId, before: now - EXPIRED_MS });
  db.run(sql.post, { ...posting });
}

/** Drops the command of a sender who has given up, unless another sender waits longer. */
export function withdrawCommand(db: Connection, { expiresAt, id, sessionId }: PostedCommand): void {
  db.run(sql.withdraw, { sessionId, id, expiresAt });
}

export function replyTo(db: Connection, sessionId: string, id: string): CommandReply | undefined {
  return db.get(sql.reply, ReplyRow, { sessionId, id })?.reply ?? undefined;
}

const OpenRow = z.object({ id: z.string(), data: z.unknown() });

/** Returns the oldest unanswered command that is not in hand. A dead sender's command ends with its time. */
export function nextCommand(
  db: Connection,
  sessionId: string,
  now: number,
  inHand: ReadonlySet<string>,
): NextCommand | undefined {
  const rows = db.all(sql.open, OpenRow, { sessionId, now, limit: inHand.size + 1 });
  const row = rows.find(({ id }) => !inHand.has(id));
  return row && { id: row.id, ...readCommand(row.data) };
}

/**
 * Stores the first answer only. Keeps the answer for a retry after the sender has given up, and drops the command (a prompt,
 * images).
 */
export function answerCommand(db: Connection, lease: Lease, id: string, reply: string): void {
  const { sessionId } = lease;
  if (!isHeld(db, lease)) return;
  db.run(sql.answer, { sessionId, id, reply });
  db.run(sql.forget, { sessionId });
}
