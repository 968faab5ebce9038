import assert from "node:assert/strict";
import { Exchange, Refusal } from "../../../src/shim/exchange.ts";
import { type Item, LineBuffer } from "../../../src/shim/line-buffer.ts";

/** Bytes. */
const FRAME = 64;

/**
 * A model check of what a turn that changes hands depends on: one Claude Code, the exchange of its shim, the log, and owners that
 * crash, freeze and return at every step. Only the exchange is the real one.
 */

/** A line of the log: its number and text. */
type Entry = readonly [number, string];

type ToExchange =
  | { readonly do: "attach"; readonly after: number }
  | { readonly do: "write"; readonly intent: number }
  | { readonly do: "ack"; readonly upTo: number }
  | { readonly do: "stop" };

/** One life of an owner, with its connection: what is on the way in both directions arrives in order, or not at all. */
export interface Owner {
  readonly epoch: number;
  readonly toShim: ToExchange[];
  readonly fromShim: (Item | "superseded")[];
  /** What it has read and not stored yet. */
  unstored: Entry[];
  /** The numbers of the last line that it has read and of the last one that it has stored. */
  seen: number;
  stored: number;
  /** The next intent that it writes. */
  next: number;
  life: "runs" | "frozen" | "dead";
  isConnected: boolean;
}

export class Setting {
  /** Small, so that partial text is evicted and Claude Code has to wait. */
  readonly exchange: Exchange<Owner>;
  readonly owners: Owner[] = [];
  /** The last one that has attached. */
  attached: Owner;
  /** What Claude Code has written, and which lines of it were partial text. */
  readonly spoken: string[] = [];
  readonly partial = new Set<number>();
  /** Intents by number, as Claude Code has received them. */
  readonly received: number[] = [];
  hasExited = false;
  /** The store: the epoch of the last owner, its log with the number of the last line, and what is to be written to Claude Code. */
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

  /** Claude Code writes a line, if it does not have to wait. */
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

  /** The shim sends, as far as its owner's connection takes it. */
  send(): boolean {
    const { owner } = this.exchange;
    const item = owner && this.exchange.next();
    if (!item) return false;
    owner.fromShim.push(item);
    // Every other line brings those behind it along, as one frame does.
    if ("exit" in item || item.n % 2 === 0) return true;
    let { n } = item;
    for (let line = this.exchange.nextLine(FRAME); line; line = this.exchange.nextLine(FRAME)) {
      n += 1;
      owner.fromShim.push({ n, line });
    }
    return true;
  }

  /** A message arrives at the shim. What a dead owner has sent before arrives, too. */
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

  /** The shim sees that a connection has ended: after all that was on the way from it, or in the middle of it. */
  close(owner: Owner): boolean {
    if (owner.life !== "dead" || !owner.isConnected) return false;
    owner.isConnected = false;
    this.exchange.release(owner);
    return true;
  }

  /** The owner reads what has arrived. */
  read(owner: Owner): boolean {
    const item = owner.life === "runs" ? owner.fromShim.shift() : undefined;
    if (item === undefined) return false;
    if (item === "superseded") owner.life = "dead";
    // Numbers that it has read before are dropped.
    else if (item.n > owner.seen) {
      owner.seen = item.n;
      owner.unstored.push([item.n, "line" in item ? item.line.toString() : "exit"]);
    }
    return true;
  }

  /** One transaction: events, and the number with which they are dealt with. An owner whose epoch is old is fenced. */
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

  /** It is to be ended: signals take effect each time, so that only the owner's may arrive. */
  stop(owner: Owner): void {
    if (owner.life === "runs") owner.toShim.push({ do: "stop" });
  }

  /** Something is decided: it stands in the log before it is written to Claude Code. */
  decide(owner: Owner): void {
    if (owner.life === "runs" && owner.epoch === this.store.epoch) this.store.intents += 1;
  }

  /** An owner writes what is decided in its order, all of it again when it is new: the shim knows what it has. */
  write(owner: Owner): boolean {
    if (owner.life !== "runs" || owner.next > this.store.intents) return false;
    owner.toShim.push({ do: "write", intent: owner.next });
    owner.next += 1;
    return true;
  }

  /** A new owner claims the session in the store, and attaches with the number that it finds there. */
  claim(): void {
    this.store.epoch += 1;
    this.#owner(this.store.epoch).toShim.push({ do: "attach", after: this.store.line });
  }

  /** What must hold at every moment. */
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
    assert.equal(this.exchange.lines.gone(line).lost, 0, "a line was acknowledged before it was stored");
  }

  /** The last owner goes on until nothing happens any more: then everything must have arrived. */
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
    // Claude Code may have waited for this.
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
