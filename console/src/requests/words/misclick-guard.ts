/** Against presses that were meant for something else: of a card that has only just come, or stands where another was. */

const SETTLES_MS = 400;
/** Within this a second press belongs to a double click. */
const DOUBLE_MS = 600;
/** No hand holds a pointer still, px. */
const SAME_PLACE = 12;

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Sides of a card, in the window, px. */
export interface Box {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

/** Place of the hand; "anywhere": it hovers over nothing, as a finger. */
export type Hand = Point | "anywhere" | undefined;

/** Why a press may not be meant for the card. */
export type Doubt = "new" | "moved" | "focused";

export class MisclickGuard {
  /** Last place of each card, from the top of the page and of the window. */
  readonly #tops = new Map<string, { readonly inPage: number; readonly inWindow: number }>();
  readonly #doubts = new Map<string, { readonly why: Doubt; readonly until: number }>();
  #last: { readonly key: string; readonly at: number; readonly point: Point | undefined } | undefined;

  /**
   * The card stands there now. One that scrolls has not moved, nor one that stays in view where it is while the page grows above
   * it, nor one that comes to where the hand is not.
   */
  note(key: string, box: Box, { hand, now, scrolled }: { hand: Hand; now: number; scrolled: number }): void {
    const before = this.#tops.get(key);
    const tops = { inPage: box.top + scrolled, inWindow: box.top };
    this.#tops.set(key, tops);
    if (!before) return this.#doubt(key, "new", now);
    const isMoved = isOther(before.inPage, tops.inPage) && isOther(before.inWindow, tops.inWindow);
    if (isMoved && (hand === "anywhere" || isWithin(box, hand))) this.#doubt(key, "moved", now);
  }

  /** Notes that it has the focus only since now: keys that were pressed before were for another. */
  focus(key: string, now: number): void {
    this.#doubt(key, "focused", now);
  }

  forget(key: string): void {
    this.#doubts.delete(key);
    this.#tops.delete(key);
  }

  /** Why a press now can be meant for another card; `point` is undefined of a key. */
  doubtOf(key: string, point: Point | undefined, now: number): Doubt | undefined {
    const last = this.#last;
    this.#last = { key, at: now, point };
    if (last && last.key !== key && now - last.at < DOUBLE_MS && isSame(last.point, point))
      return point ? "moved" : "focused";
    const { until = 0, why } = this.#doubts.get(key) ?? {};
    if (now >= until) return undefined;
    // A key presses what has the focus wherever that stands, and a pointer what it is over.
    return why === (point ? "focused" : "moved") ? undefined : why;
  }

  #doubt(key: string, why: Doubt, now: number): void {
    const doubt = this.#doubts.get(key);
    // A card that has just come is new, whatever else it does.
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
