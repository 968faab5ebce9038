import type { EventType, StoredEvent } from "../domain/event.ts";
import type { SessionOptions } from "../domain/options.ts";
import { isAtWork, type SessionState, type SessionStatus, statusOf } from "../domain/session.ts";
import {
  type Append,
  ConflictError,
  FencedError,
  type Lease,
  type NewSession,
  type SessionQuery,
  type SessionRecord,
  NoAnswerError,
} from "../engine/ports.ts";
import { Notifier } from "./tail.ts";
import { EVENT, OPTIONS, POLICY, STATE } from "./format.ts";
import { newestFirst } from "./newest-first.ts";
import type { Command, CommandReply } from "../domain/command.ts";
import { type JsonObject, JsonText } from "../domain/json.ts";

/** One session: its row, its log, its inbox. No method waits, so that each of them is a transaction. */
export class MemorySession {
  readonly id: string;
  readonly principal: string;
  readonly #createdAt: number;
  /** Rings for whatever a reader of this session can wait for: events, commands, a change of owner, its end. */
  readonly notifier = new Notifier();
  readonly inbox = new MemoryInbox(this.notifier);
  /** Those that `/clear` has given it. */
  readonly transcripts = new Set<string>();
  readonly #log: { readonly at: number; readonly text: string }[] = [];
  // Stored as texts, as in a database: callers share no objects with the store, and what JSON cannot express is lost in both.
  #spec: string;
  readonly #policy: string | undefined;
  #state: string;
  #title: string | undefined;
  #rev = 1;
  #owner: string | undefined;
  #epoch = 0;
  #deleted = false;
  // What the list asks for, copied out of the texts so that a search need not parse them.
  #status: SessionStatus;
  #cwd: string;
  #firstPrompt: string | undefined;
  #updatedAt: number;

  constructor(session: NewSession) {
    this.id = session.id;
    this.principal = session.principal;
    this.#createdAt = session.at;
    this.#updatedAt = session.at;
    this.#spec = OPTIONS.write(session.spec);
    this.#policy = session.policy && POLICY.write(session.policy);
    this.#cwd = session.spec.cwd;
    this.#assertContiguous(session.state, 0);
    this.#state = STATE.write(session.state);
    this.#status = statusOf(session.state);
  }

  get owner(): string | undefined {
    return this.#owner;
  }

  get updatedAt(): number {
    return this.#updatedAt;
  }

  get status(): SessionStatus {
    return this.#status;
  }

  get atWork(): boolean {
    return isAtWork(STATE.read(this.#state));
  }

  /** About what it takes up, in bytes. */
  get size(): number {
    return this.#log.reduce((sum, { text }) => sum + text.length, this.#spec.length + this.#state.length);
  }

  get deleted(): boolean {
    return this.#deleted;
  }

  record(owner: SessionRecord["owner"]): SessionRecord {
    return {
      id: this.id,
      principal: this.principal,
      spec: OPTIONS.read(this.#spec),
      policy: this.#policy === undefined ? undefined : POLICY.read(this.#policy),
      state: STATE.read(this.#state),
      title: this.#title,
      createdAt: this.#createdAt,
      updatedAt: this.#updatedAt,
      rev: this.#rev,
      owner,
    };
  }

  raw(): JsonObject {
    const policy = this.#policy ?? null;
    return { id: this.id, principal: this.principal, state: this.#state, spec: this.#spec, policy };
  }

  matches({ principal, statuses, cwd, since, text, before }: SessionQuery): boolean {
    return (
      principal === this.principal &&
      (statuses === undefined || statuses.includes(this.#status)) &&
      (cwd === undefined || cwd === this.#cwd) &&
      (since === undefined || this.#updatedAt >= since) &&
      (text === undefined || this.#mentions(text)) &&
      (before === undefined || newestFirst(before, this) < 0)
    );
  }

  /** `updatedAt` stays: it is the time of the last append, and a new title must not move a session in the list. */
  update(rev: number, patch: { title?: string; spec?: SessionOptions }): void {
    if (rev !== this.#rev) throw new ConflictError(`session ${this.id} has changed since it was read`);
    if (patch.spec !== undefined) {
      this.#spec = OPTIONS.write(patch.spec);
      this.#cwd = patch.spec.cwd;
    }
    this.#title = patch.title ?? this.#title;
    this.#rev++;
  }

  /** Gives the session to the node, whichever node had it. */
  claim(nodeId: string, tookOver: boolean): Lease {
    this.#own(nodeId);
    this.#epoch++;
    return { sessionId: this.id, nodeId, epoch: this.#epoch, tookOver };
  }

  release(lease: Lease): void {
    if (this.isHeldBy(lease)) this.#own(undefined);
  }

  isHeldBy(lease: Lease): boolean {
    return this.#owner === lease.nodeId && this.#epoch === lease.epoch;
  }

  append(lease: Lease, { events, at, state }: Append): void {
    if (!this.isHeldBy(lease)) throw new FencedError(`session ${this.id} is no longer owned by ${lease.nodeId}`);
    this.#assertContiguous(state, events.length);
    // All that can fail comes before the first change.
    const stored = events.map((event) => ({ at, text: EVENT.write(event) }));
    this.#state = STATE.write(state);
    this.#status = statusOf(state);
    if (state.transcriptId !== undefined) this.transcripts.add(state.transcriptId);
    for (const event of stored) this.#log.push(event);
    this.#firstPrompt ??= events.find((event) => event.type === "prompt.queued")?.data.text;
    this.#updatedAt = at;
    this.#rev++;
    this.notifier.notify();
  }

  read(from: number, limit: number, types?: readonly EventType[]): StoredEvent[] {
    const start = Math.max(from, 1) - 1;
    const end = types ? this.#log.length : start + limit;
    const page = this.#log.slice(start, end);
    const events = page.map(({ at, text }, n): StoredEvent =>
      Object.assign(EVENT.read(text), { id: start + n + 1, at }),
    );
    return types ? events.filter(({ type }) => types.includes(type)).slice(0, limit) : events;
  }

  /** Ends all that waits for this session. */
  delete(): void {
    this.#deleted = true;
    this.inbox.close();
    this.#own(undefined);
  }

  #own(nodeId: string | undefined): void {
    this.#owner = nodeId;
    this.#rev++;
    this.notifier.notify();
  }

  #mentions(text: string): boolean {
    const sought = text.toLowerCase();
    return [this.#title, this.#cwd, this.#firstPrompt].some((field) => field?.toLowerCase().includes(sought));
  }

  /** The state names events by their ids: were it off by one, it would name the wrong ones for ever. */
  #assertContiguous(state: SessionState, added: number): void {
    const last = this.#log.length + added;
    if (state.lastEventId === last) return;
    const ids = `lastEventId ${String(state.lastEventId)}, log ${String(last)}`;
    throw new Error(`session ${this.id}: state and log disagree: ${ids}`);
  }
}

/** How many answers a session remembers, so that a command sent again is answered again and not run again. */
const MAX_REPLIES = 1000;

type Outcome = JsonText<CommandReply> | Error;

interface OpenCommand {
  readonly command: JsonText<Command>;
  /** Several when the same command was sent again meanwhile: all get the one answer. */
  readonly senders: Set<(outcome: Outcome) => void>;
}

/** The commands of one session, in their order of arrival. A command without a waiting sender is not delivered. */
class MemoryInbox {
  readonly #notifier: Notifier;
  readonly #open = new Map<string, OpenCommand>();
  readonly #replies = new Map<string, JsonText<CommandReply>>();

  constructor(notifier: Notifier) {
    this.#notifier = notifier;
  }

  /** The answer of the session's owner within `timeoutMs`. Rejects with NoAnswerError; at `closing` with Error. */
  async ask(command: Command, timeoutMs: number, closing: Notifier): Promise<CommandReply> {
    const reply = this.#replies.get(command.id) ?? (await this.#wait(this.#post(command), timeoutMs, closing));
    if (reply instanceof Error) throw reply;
    return reply.read();
  }

  /** The oldest unanswered command that is not in `inHand`. */
  next(inHand: ReadonlySet<string>): Command | undefined {
    for (const [id, { command }] of this.#open) if (!inHand.has(id)) return command.read();
    return undefined;
  }

  /** The first answer stands. It is kept after the sender has given up: a retry gets the same answer. */
  answer(id: string, reply: CommandReply): void {
    if (this.#replies.has(id)) return;
    const kept = new JsonText(reply);
    this.#replies.set(id, kept);
    const [oldest] = this.#replies.keys();
    if (oldest !== undefined && this.#replies.size > MAX_REPLIES) this.#replies.delete(oldest);
    this.#settle(id, kept);
  }

  /** The session is gone: no answer will come. */
  close(): void {
    for (const id of this.#open.keys()) this.#settle(id, new NoAnswerError("the session was deleted"));
  }

  #post(command: Command): OpenCommand {
    const open = this.#open.get(command.id) ?? { command: new JsonText(command), senders: new Set() };
    this.#open.set(command.id, open);
    this.#notifier.notify();
    return open;
  }

  #settle(id: string, outcome: Outcome): void {
    const senders = this.#open.get(id)?.senders ?? [];
    this.#open.delete(id);
    for (const settle of senders) settle(outcome);
  }

  #wait(open: OpenCommand, timeoutMs: number, closing: Notifier): Promise<Outcome> {
    const { id } = open.command.read();
    return new Promise((resolve) => {
      const leave = (outcome: Outcome): void => {
        clearTimeout(timer);
        stopListening();
        open.senders.delete(leave);
        if (open.senders.size === 0 && this.#open.get(id) === open) this.#open.delete(id);
        resolve(outcome);
      };
      const late = (): void => leave(new NoAnswerError(`the command was not answered within ${String(timeoutMs)} ms`));
      const timer = setTimeout(late, timeoutMs);
      const stopListening = closing.subscribe(() => leave(new Error("the store was closed")));
      open.senders.add(leave);
    });
  }
}
