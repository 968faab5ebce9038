/** Detects presses that may be meant for another card: `MisclickGuard` doubts new and moved cards for `SETTLES_MS`. */

const SETTLES_MS = 400;
/** Maximum time between the presses of a double click, ms. */
const DOUBLE_MS = 600;
/** Movement of a resting pointer, px. */
const SAME_PLACE = 12;

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Edges of a card in the window, px. */
export interface Box {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

/** Pointer position; "anywhere" for touch, because a finger does not hover. */
export type Hand = Point | "anywhere" | undefined;

/** Reason why a press may not be meant for the card. */
export type Doubt = "new" | "moved" | "focused";

export class MisclickGuard {
  /** Last top edge of each card, in the page and in the window. */
  readonly #tops = new Map<string, { readonly inPage: number; readonly inWindow: number }>();
  readonly #doubts = new Map<string, { readonly why: Doubt; readonly until: number }>();
  #last: { readonly key: string; readonly at: number; readonly point: Point | undefined } | undefined;

  /**
   * Records the place of the card. Doubts the card as `moved` if the pointer is over the card and the place differs both in the
   * page (not only by scrolling) and in the window (not only by growth above).
   */
  note(key: string, box: Box, { hand, now, scrolled }: { hand: Hand; now: number; scrolled: number }): void {
    const before = this.#tops.get(key);
    const tops = { inPage: box.top + scrolled, inWindow: box.top };
    this.#tops.set(key, tops);
    if (!before) return this.#doubt(key, "new", now);
    const isMoved = isOther(before.inPage, tops.inPage) && isOther(before.inWindow, tops.inWindow);
    if (isMoved && (hand === "anywhere" || isWithin(box, hand))) this.#doubt(key, "moved", now);
  }

  /** Doubts keys as `focused` for a moment, because they may be meant for the previous card. */
  focus(key: string, now: number): void {
    this.#doubt(key, "focused", now);
  }

  forget(key: string): void {
    this.#doubts.delete(key);
    this.#tops.delete(key);
  }

  /** Reason why a press now may be meant for another card; `point` is `undefined` for a key. */
  doubtOf(key: string, point: Point | undefined, now: number): Doubt | undefined {
    const last = this.#last;
    this.#last = { key, at: now, point };
    if (last && last.key !== key && now - last.at < DOUBLE_MS && isSame(last.point, point))
      return point ? "moved" : "focused";
    const { until = 0, why } = this.#doubts.get(key) ?? {};
    if (now >= until) return undefined;
    // The place of the card does not matter for a key, nor the focus for a pointer.
    return why === (point ? "focused" : "moved") ? undefined : why;
  }

  #doubt(key: string, why: Doubt, now: number): void {
    const doubt = this.#doubts.get(key);
    // Keeps `new`, the strongest doubt, until it expires.
    if (why === "new" || doubt?.why !== "new" || now >= doubt.until)
      this.#doubts.set(key, { why, until: now + SETTLES_MS });
  }
}

function isOther(before: number, now: number): boolean {
  return Math.abs(before - now) > 1;
}

export function isWithin({ bottom, left, right, top }: Box, point: Point | undefined): boolean {
  return point !== undefined && point.x >= left && point.x <= right && point.y >= top && point.y <= bottom;
}

function isSame(one: Point | undefined, other: Point | undefined): boolean {
  if (!one || !other) return one === other;
  return Math.hypot(one.x - other.x, one.y - other.y) < SAME_PLACE;
}
