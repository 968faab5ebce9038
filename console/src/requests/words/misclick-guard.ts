/** Against presses that were meant for something else: a card that has only just come, or has moved to where another was. */

const SETTLES_MS = 400;
/** Within this a second press belongs to a double click. */
const DOUBLE_MS = 600;

export class MisclickGuard {
  readonly #settledAt = new Map<string, number>();
  readonly #tops = new Map<string, number>();
  #last: { readonly key: string; readonly at: number } | undefined;

  /** The card stands there now, px from the top of the page. */
  note(key: string, top: number, now: number): void {
    const before = this.#tops.get(key);
    this.#tops.set(key, top);
    if (before === undefined || Math.abs(before - top) > 1) this.unsettle(key, now);
  }

  /** From now on as if it had only just come. */
  unsettle(key: string, now: number): void {
    this.#settledAt.set(key, now + SETTLES_MS);
  }

  forget(key: string): void {
    this.#settledAt.delete(key);
    this.#tops.delete(key);
  }

  /** Whether a press now can be meant for this card. */
  isDeliberate(key: string, now: number): boolean {
    const last = this.#last;
    this.#last = { key, at: now };
    if (last && last.key !== key && now - last.at < DOUBLE_MS) return false;
    return now >= (this.#settledAt.get(key) ?? 0);
  }
}
