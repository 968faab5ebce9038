import { Command, type CommandReply } from "../domain/command.ts";
import { parseJson } from "../domain/json.ts";
import type { InboxItem, Lease } from "../engine/ports.ts";
import type { SessionWatch } from "./session-watch.ts";

/** Reads commands on their way to owners, and their answers, for all storage engines. */

/** Maximum number of answers kept per session, so that a repeated command is answered again and not run again. */
export const MAX_REPLIES = 1000;

/** Time after the expiry at which a dead sender's command is deleted, ms. */
export const EXPIRED_MS = 60_000;

/** Next command for an owner, or the refusal of a row that is damaged or was sent by a newer server. */
export type NextCommand = { readonly id: string } & (
  { readonly command: Command } | { readonly refusal: CommandReply }
);

const refusalOf = (message: string): CommandReply => ({ ok: false, refusal: { code: "INTERNAL", message } });
const UNKNOWN_COMMAND = refusalOf("The server that owns the session is older than this one. Update it.");
const UNREADABLE_COMMAND = refusalOf("The command could not be read from the store. Send it again.");

export function readCommand(text: unknown): { command: Command } | { refusal: CommandReply } {
  const found = parseJson(String(text));
  const { data: command } = Command.safeParse(found);
  if (command) return { command };
  const isCommand = typeof found === "object" && found !== null && "kind" in found && typeof found.kind === "string";
  return { refusal: isCommand ? UNKNOWN_COMMAND : UNREADABLE_COMMAND };
}

interface Inbox {
  readonly changes: SessionWatch;
  readonly signal: AbortSignal;
  /** Returns the oldest unanswered command that is not in hand; `undefined` if the lease is lost. */
  readonly next: (inHand: ReadonlySet<string>) => Promise<readonly NextCommand[] | undefined>;
  readonly answer: (id: string, reply: CommandReply) => Promise<void>;
}

/**
 * Yields the commands of a session. Reads one command at a time: while the owner worked on the last one, the next may have been
 * withdrawn or the session lost.
 */
export async function* receiveCommands(
  { sessionId }: Lease,
  { answer, changes, next, signal }: Inbox,
): AsyncGenerator<InboxItem, void> {
  const inHand = new Set<string>();
  const look = async () => next(inHand);
  for await (const found of changes.tail({ sessionId, topic: "commands", signal, look })) {
    const { id } = found;
    inHand.add(id);
    const ack = async (reply: CommandReply): Promise<void> => {
      await answer(id, reply);
      inHand.delete(id);
    };
    if ("command" in found) yield { command: found.command, ack };
    else await ack(found.refusal);
  }
}

interface Wait {
  readonly sessionId: string;
  readonly timeoutMs: number;
  readonly reply: () => Promise<CommandReply | undefined>;
}

/** Resolves with the answer to a command, or with `undefined` after `timeoutMs`. */
export async function awaitReply(
  changes: SessionWatch,
  { reply, sessionId, timeoutMs }: Wait,
): Promise<CommandReply | undefined> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), timeoutMs);
  const look = async (): Promise<CommandReply[]> => {
    const found = await reply();
    return found ? [found] : [];
  };
  try {
    const { signal } = timeout;
    for await (const found of changes.tail({ sessionId, topic: "replies", signal, look })) return found;
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
