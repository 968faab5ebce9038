import { ControlRequests } from "./control-requests.ts";
import { type MissingLines, type Item, LineBuffer } from "./line-buffer.ts";

/**
 * Exchange between one Claude Code and its owner: the present owner, the next line for the owner, and the lines written to
 * Claude Code. Pure: `test/unit/shim-model.test.ts` checks crashes at every step.
 */

/** Thrown if a message is refused. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

export interface Attachment<Owner> extends MissingLines {
  /** Owner until now, if another connection owned the process. */
  readonly former: Owner | undefined;
}

/** Maximum number of remembered ids of written lines. An owner repeats only lines of an unfinished turn. */
const MAX_REMEMBERED = 4_096;

export class Exchange<Owner> {
  readonly lines: LineBuffer;
  readonly control = new ControlRequests();
  readonly #written = new Set<string>();
  #owner: Owner | undefined;
  #epoch: number;
  /** Number of the last item given to this owner. */
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

  /** Ids of the last lines written to Claude Code, oldest first. */
  get written(): string[] {
    return [...this.#written];
  }

  /** Throws `Refusal` if `owner` does not own the process under `epoch`. */
  check(owner: Owner, epoch: number): void {
    if (epoch !== this.#epoch) throw new Refusal(`epoch ${String(epoch)} is not the owner's, ${String(this.#epoch)}`);
    if (owner !== this.#owner) throw new Refusal("another connection owns this process");
  }

  /**
   * Throws `Refusal` if `epoch` is below the last owner's or equals the epoch of a connected owner, or if line `after` was not
   * written yet.
   */
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
    return { former, ...this.lines.missingAfter(after) };
  }

  /** Handles the end of a connection. Returns false if `owner` did not own the process. */
  release(owner: Owner): boolean {
    if (this.#owner !== owner) return false;
    this.#owner = undefined;
    return true;
  }

  /** Returns the next item for the owner, and counts it as sent. */
  next(): Item | undefined {
    const item = this.lines.next(this.#sent);
    if (item) this.#sent = item.n;
    return item;
  }

  /**
   * Returns the line directly after the last sent item, and counts it as sent. Returns `undefined` for a gap, an exit, or a
   * line above `maxBytes`.
   */
  nextLine(maxBytes: number): Buffer | undefined {
    const item = this.lines.next(this.#sent);
    if (!item || "exit" in item || item.n !== this.#sent + 1 || item.line.length > maxBytes) return undefined;
    this.#sent = item.n;
    return item.line;
  }

  /** Throws `Refusal` if the item `upTo` was not sent to this owner yet. */
  acknowledge(upTo: number): void {
    if (upTo > this.#sent) throw new Refusal(`line ${String(upTo)} was not sent yet`);
    this.lines.acknowledge(upTo);
  }

  /** Returns false for a line that was written before and must not be repeated. */
  write(lineId: string, body: Buffer): boolean {
    if (this.#written.has(lineId)) return false;
    this.#written.add(lineId);
    const [oldest] = this.#written;
    if (this.#written.size > MAX_REMEMBERED && oldest !== undefined) this.#written.delete(oldest);
    this.control.noteWritten(lineId, body);
    return true;
  }

  /** Takes a line of Claude Code. Returns true for partial text, which is not a control request. */
  read(line: Buffer): boolean {
    const isPart = this.lines.push(line);
    if (!isPart) this.control.noteRead(line);
    return isPart;
  }
}
