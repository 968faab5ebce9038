import assert from "node:assert/strict";
import { Exchange, Refusal } from "../../../src/shim/exchange.ts";
import { type Item, LineBuffer } from "../../../src/shim/line-buffer.ts";

/** Limit for further lines in a frame, bytes. */
const FRAME = 64;

/**
 * Model check of turns that change hands: one Claude Code, the exchange of its shim, the log, and owners that crash, freeze and
 * return at every step. Only `Exchange` is real.
 */

/** Number and text of a line in the log. */
type Entry = readonly [number, string];

type ToExchange =
  | { readonly do: "attach"; readonly after: number }
  | { readonly do: "write"; readonly intent: number }
  | { readonly do: "ack"; readonly upTo: number }
  | { readonly do: "stop" };

/** Connection and life of an owner: messages in both directions arrive in order, or not at all. */
export interface Owner {
  readonly epoch: number;
  readonly toShim: ToExchange[];
  readonly fromShim: (Item | "superseded")[];
  /** Lines read and not yet stored. */
  unstored: Entry[];
  /** Number of the last line read; `stored`: of the last line stored. */
  seen: number;
  stored: number;
  /** Number of the next intent to write. */
  next: number;
  life: "runs" | "frozen" | "dead";
  isConnected: boolean;
}

export class ExchangeModel {
  /** Small buffer, so that partial text is evicted and Claude Code has to wait. */
  readonly exchange: Exchange<Owner>;
  readonly owners: Owner[] = [];
  /** Owner that attached last. */
  attached: Owner;
  /** Lines that Claude Code has written; `partial`: numbers of those with partial text. */
  readonly spoken: string[] = [];
  readonly partial = new Set<number>();
  /** Numbers of intents, as Claude Code received them. */
  readonly received: number[] = [];
  hasExited = false;
  /** The store: epoch of the last owner, log, number of the last line, and number of intents to write to Claude Code. */
  readonly store = { epoch: 1, entries: [] as Entry[], line: 0, intents: 0 };

  constructor() {
    const first = this.#owner(1);
    this.attached = first;
    this.exchange = new Exchange(first, 1, new LineBuffer(1_500));
  }

  #owner(epoch: number): Owner {
    const owner: Owner = {
      epoch,
      toShim: [],
      fromShim: [],
      unstored: [],
      seen: this.store.line,
      stored: this.store.line,
      next: 1,
      life: "runs",
      isConnected: true,
    };
    this.owners.push(owner);
    return owner;
  }

  /** Writes a line as Claude Code, unless the buffer is full. */
  speak(isPartial: boolean): void {
    if (this.hasExited || this.exchange.lines.isFull) return;
    const n = this.spoken.length + 1;
    const line = `{"type":"${isPartial ? "stream_event" : "assistant"}","n":${String(n)}}`;
    this.spoken.push(line);
    if (isPartial) this.partial.add(n);
    this.exchange.read(Buffer.from(line));
  }

  exit(): void {
    if (this.hasExited) return;
    this.hasExited = true;
    this.exchange.lines.end({ code: 0, signal: null });
    this.spoken.push("exit");
  }

  /** Sends from the shim, as much as the owner's connection takes. */
  send(): boolean {
    const { owner } = this.exchange;
    const item = owner && this.exchange.next();
    if (!item) return false;
    owner.fromShim.push(item);
    // Every second line brings the lines after it along, as a frame does.
    if ("exit" in item || item.n % 2 === 0) return true;
    let { n } = item;
    for (let line = this.exchange.nextLine(FRAME); line; line = this.exchange.nextLine(FRAME)) {
      n += 1;
      owner.fromShim.push({ n, line });
    }
    return true;
  }

  /** Delivers a message to the shim. Messages that a dead owner sent earlier arrive, too. */
  arrive(owner: Owner): boolean {
    const message = owner.isConnected ? owner.toShim.shift() : undefined;
    if (!message) return false;
    try {
      this.#carryOut(owner, message);
    } catch (error) {
      assert(error instanceof Refusal);
    }
    return true;
  }

  #carryOut(owner: Owner, message: ToExchange): void {
    const { exchange } = this;
    if (message.do === "attach") {
      exchange.attach(owner, owner.epoch, message.after).former?.fromShim.push("superseded");
      assert(owner.epoch > this.attached.epoch, "an owner has attached behind a later one");
      this.attached = owner;
      return;
    }
    exchange.check(owner, owner.epoch);
    assert.equal(owner.epoch, this.attached.epoch, "a former owner still has a say");
    if (message.do === "stop") return;
    if (message.do === "ack") exchange.acknowledge(message.upTo);
    else if (!this.hasExited && exchange.write(`w${String(message.intent)}`, Buffer.from("x"))) {
      this.received.push(message.intent);
    }
  }

  /** Ends a connection at the shim, after all messages or in the middle of them. */
  close(owner: Owner): boolean {
    if (owner.life !== "dead" || !owner.isConnected) return false;
    owner.isConnected = false;
    this.exchange.release(owner);
    return true;
  }

  /** Reads the next item that has arrived at the owner. */
  read(owner: Owner): boolean {
    const item = owner.life === "runs" ? owner.fromShim.shift() : undefined;
    if (item === undefined) return false;
    if (item === "superseded") owner.life = "dead";
    // Drops lines with numbers already read.
    else if (item.n > owner.seen) {
      owner.seen = item.n;
      owner.unstored.push([item.n, "line" in item ? item.line.toString() : "exit"]);
    }
    return true;
  }

  /** Stores events and the number of the last line in one transaction. An owner with an old epoch is fenced. */
  commit(owner: Owner): boolean {
    if (owner.life !== "runs" || owner.unstored.length === 0) return false;
    if (owner.epoch < this.store.epoch) owner.life = "dead";
    else {
      this.store.entries.push(...owner.unstored);
      this.store.line = owner.stored = owner.seen;
    }
    owner.unstored = [];
    return true;
  }

  acknowledge(owner: Owner): void {
    if (owner.life === "runs") owner.toShim.push({ do: "ack", upTo: owner.stored });
  }

  /** Sends a signal. Signals are not idempotent, so only those of the attached owner may arrive. */
  stop(owner: Owner): void {
    if (owner.life === "runs") owner.toShim.push({ do: "stop" });
  }

  /** Stores a decision in the log before it is written to Claude Code. */
  decide(owner: Owner): void {
    if (owner.life === "runs" && owner.epoch === this.store.epoch) this.store.intents += 1;
  }

  /** Writes the next decision. A new owner writes all decisions again: the shim drops duplicates. */
  write(owner: Owner): boolean {
    if (owner.life !== "runs" || owner.next > this.store.intents) return false;
    owner.toShim.push({ do: "write", intent: owner.next });
    owner.next += 1;
    return true;
  }

  /** Claims the session in the store as a new owner, and attaches after the last stored line. */
  claim(): void {
    this.store.epoch += 1;
    this.#owner(this.store.epoch).toShim.push({ do: "attach", after: this.store.line });
  }

  /** Checks the invariants of every moment. */
  check(): void {
    const { entries, line } = this.store;
    for (const [index, [n, text]] of entries.entries()) {
      assert.equal(text, this.spoken[n - 1], "a line has another text");
      const before = entries[index - 1]?.[0] ?? 0;
      assert(n > before, "a line is doubled or out of order");
      for (let gone = before + 1; gone < n; gone += 1) assert(this.partial.has(gone), `line ${String(gone)} is lost`);
    }
    assert.deepEqual(
      this.received,
      this.received.map((_, index) => index + 1),
      "a write is lost, doubled or reordered",
    );
    assert.equal(this.exchange.lines.missingAfter(line).lost, 0, "a line was acknowledged before it was stored");
  }

  /** Runs the last owner until no move is possible; then every line and write must have arrived. */
  settle(): void {
    const { owner } = this.exchange;
    if (owner?.life !== "runs" || owner.epoch < this.store.epoch) this.claim();
    const last = this.owners.at(-1)!;
    const moves = [
      () => this.arrive(last),
      () => this.send(),
      () => this.read(last),
      () => this.commit(last),
      () => this.write(last),
    ];
    const goOn = () => {
      while (moves.some((move) => move()));
    };
    goOn();
    // Claude Code may have waited for the acknowledgement.
    this.acknowledge(last);
    goOn();
    this.check();
    const kept = this.store.entries.map(([n]) => n);
    const missing = this.spoken.map((_, index) => index + 1).filter((n) => !kept.includes(n) && !this.partial.has(n));
    assert.deepEqual(missing, [], "lines never arrived");
    if (!this.hasExited) assert.equal(this.received.length, this.store.intents, "a write never arrived");
    assert.equal(this.exchange.lines.isDone, this.hasExited);
  }
}
