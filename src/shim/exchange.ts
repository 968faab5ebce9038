import { ControlRequests } from "./control-requests.ts";
import { type Gone, type Item, LineBuffer } from "./line-buffer.ts";

/**
 * What passes between one Claude Code and its owner: who the owner is, which line it gets next, and which lines were written
 * towards Claude Code. Pure: `test/unit/shim-model.test.ts` checks it against crashes at every step.
 */

/** A message that is not carried out. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

export interface Attachment<Owner> extends Gone {
  /** It was the owner until now, by another connection. */
  readonly former: Owner | undefined;
}

/** An owner repeats only what it cannot know to be written: lines of a turn that is not over. */
const MAX_REMEMBERED = 4_096;

export class Exchange<Owner> {
  readonly lines: LineBuffer;
  readonly control = new ControlRequests();
  readonly #written = new Set<string>();
  #owner: Owner | undefined;
  #epoch: number;
  /** The last number that this owner was given. */
  #sent = 0;

  constructor(owner: Owner, epoch: number, lines = new LineBuffer()) {
    this.#owner = owner;
    this.#epoch = epoch;
    this.lines = lines;
  }

  get owner(): Owner | undefined {
    return this.#owner;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Ids of the last lines towards Claude Code, the oldest first. */
  get written(): string[] {
    return [...this.#written];
  }

  /** Throws Refusal where this is not the owner, or no longer. */
  check(owner: Owner, epoch: number): void {
    if (epoch !== this.#epoch) throw new Refusal(`epoch ${String(epoch)} is not ${String(this.#epoch)}, the owner's`);
    if (owner !== this.#owner) throw new Refusal("another connection owns this process");
  }

  /** Throws Refusal for an epoch below the last owner's or equal to a connected one's, and for a line that was not written yet. */
  attach(owner: Owner, epoch: number, after: number): Attachment<Owner> {
    const isFree = this.#owner === undefined || this.#owner === owner;
    if (epoch < this.#epoch || (epoch === this.#epoch && !isFree)) {
      throw new Refusal(`this process belongs to an owner of epoch ${String(this.#epoch)}`);
    }
    if (after > this.lines.last) throw new Refusal(`this process has written ${String(this.lines.last)} lines so far`);
    const former = isFree ? undefined : this.#owner;
    this.#owner = owner;
    this.#epoch = epoch;
    this.#sent = after;
    return { former, ...this.lines.gone(after) };
  }

  /** Its connection has ended. False where it was not the owner. */
  release(owner: Owner): boolean {
    if (this.#owner !== owner) return false;
    this.#owner = undefined;
    return true;
  }

  /** The next item for the owner, once. */
  next(): Item | undefined {
    const item = this.lines.next(this.#sent);
    if (item) this.#sent = item.n;
    return item;
  }

  /** The line behind the last that was given: undefined where it has more bytes, or is none but an exit, or is not there. */
  nextLine(maxBytes: number): Buffer | undefined {
    const item = this.lines.next(this.#sent);
    if (!item || "exit" in item || item.n !== this.#sent + 1 || item.line.length > maxBytes) return undefined;
    this.#sent = item.n;
    return item.line;
  }

  /** Throws Refusal for a number that this owner was not given yet. */
  acknowledge(upTo: number): void {
    if (upTo > this.#sent) throw new Refusal(`line ${String(upTo)} was not sent yet`);
    this.lines.acknowledge(upTo);
  }

  /** False for a line that was written before, and must not be written again. */
  write(lineId: string, body: Buffer): boolean {
    if (this.#written.has(lineId)) return false;
    this.#written.add(lineId);
    const [oldest] = this.#written;
    if (this.#written.size > MAX_REMEMBERED && oldest !== undefined) this.#written.delete(oldest);
    this.control.wrote(lineId, body);
    return true;
  }

  /** A line of Claude Code. Whether it is partial text, which is no control request. */
  read(line: Buffer): boolean {
    const isPart = this.lines.push(line);
    if (!isPart) this.control.read(line);
    return isPart;
  }
}
