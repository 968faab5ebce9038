import type { Command, CommandReply } from "../domain/command.ts";
import { JsonText } from "../domain/json.ts";
import { NoAnswerError } from "../engine/ports.ts";
import type { Bell } from "./follow.ts";

/** How many answers a session remembers, so that a command sent again is answered again and not run again. */
const REPLIES_KEPT = 1000;

type Outcome = JsonText<CommandReply> | Error;

interface OpenCommand {
  readonly command: JsonText<Command>;
  /** Several when the same command was sent again meanwhile: all get the one answer. */
  readonly senders: Set<(outcome: Outcome) => void>;
}

/** The commands of one session, in the order they came. One that nobody waits for any more is no longer delivered. */
export class MemoryInbox {
  readonly #bell: Bell;
  readonly #open = new Map<string, OpenCommand>();
  readonly #replies = new Map<string, JsonText<CommandReply>>();

  constructor(bell: Bell) {
    this.#bell = bell;
  }

  /** The answer of whoever owns the session within `timeoutMs`. Rejects with NoAnswerError; at `closing` with Error. */
  async ask(command: Command, timeoutMs: number, closing: Bell): Promise<CommandReply> {
    const reply = this.#replies.get(command.id) ?? (await this.#wait(this.#post(command), timeoutMs, closing));
    if (reply instanceof Error) throw reply;
    return reply.read();
  }

  /** The oldest unanswered command that is not in `inHand`. */
  next(inHand: ReadonlySet<string>): Command | undefined {
    for (const [id, { command }] of this.#open) if (!inHand.has(id)) return command.read();
    return undefined;
  }

  /** The first answer stands. It is kept although the sender has given up: he may ask again. */
  answer(id: string, reply: CommandReply): void {
    if (this.#replies.has(id)) return;
    const kept = new JsonText(reply);
    this.#replies.set(id, kept);
    const [oldest] = this.#replies.keys();
    if (oldest !== undefined && this.#replies.size > REPLIES_KEPT) this.#replies.delete(oldest);
    this.#settle(id, kept);
  }

  /** The session is gone: nobody will ever answer. */
  close(): void {
    for (const id of this.#open.keys()) this.#settle(id, new NoAnswerError("the session was deleted"));
  }

  #post(command: Command): OpenCommand {
    const open = this.#open.get(command.id) ?? { command: new JsonText(command), senders: new Set() };
    this.#open.set(command.id, open);
    this.#bell.ring();
    return open;
  }

  #settle(id: string, outcome: Outcome): void {
    const senders = this.#open.get(id)?.senders ?? [];
    this.#open.delete(id);
    for (const settle of senders) settle(outcome);
  }

  #wait(open: OpenCommand, timeoutMs: number, closing: Bell): Promise<Outcome> {
    const { id } = open.command.read();
    return new Promise((resolve) => {
      const leave = (outcome: Outcome): void => {
        clearTimeout(timer);
        stopListening();
        open.senders.delete(leave);
        if (open.senders.size === 0 && this.#open.get(id) === open) this.#open.delete(id);
        resolve(outcome);
      };
      const late = (): void => leave(new NoAnswerError(`nobody answered the command within ${String(timeoutMs)} ms`));
      const timer = setTimeout(late, timeoutMs);
      const stopListening = closing.listen(() => leave(new Error("the store was closed")));
      open.senders.add(leave);
    });
  }
}
