import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { focusHeading } from "../state/focus.ts";
import type { Draft } from "./draft.ts";
import { type Doubt, type Hand, isWithin, MisclickGuard, type Point } from "./words/misclick-guard.ts";

/** Where the cards stand, so that nothing is pressed by mistake, and where the focus goes when one is dealt with. */

const guard = new MisclickGuard();
const cards = new Map<string, HTMLElement>();
const heights = new Map<string, number>();

let hand: Hand;
/** The hand is over the cards, or between them: until it goes, none of them may move. */
const isHandOnCards = signal(false);

/** All at once: a card that grows moves those below it. The view may yet scroll so that they stay where they are. */
const observer = new ResizeObserver(() => requestAnimationFrame(noteAll));
addEventListener("scroll", noteAll, { passive: true });
for (const event of ["pointermove", "pointerdown"] as const) addEventListener(event, noteHand, { passive: true });
document.documentElement.addEventListener("pointerleave", () => (isHandOnCards.value = false));

function noteAll(): void {
  for (const [key, card] of cards) note(key, card);
}

function note(key: string, card: HTMLElement): void {
  const box = card.getBoundingClientRect();
  heights.set(key, box.height);
  guard.note(key, box, { hand, scrolled: scrollY, now: performance.now() });
}

function noteHand({ clientX: x, clientY: y, pointerType }: PointerEvent): void {
  const isFinger = pointerType === "touch";
  hand = isFinger ? "anywhere" : { x, y };
  isHandOnCards.value = !isFinger && isAmongCards({ x, y });
}

function isAmongCards(point: Point): boolean {
  const boxes = [...cards.values()].map((card) => card.getBoundingClientRect());
  const [top, left] = [Math.min(...boxes.map((box) => box.top)), Math.min(...boxes.map((box) => box.left))];
  const [bottom, right] = [Math.max(...boxes.map((box) => box.bottom)), Math.max(...boxes.map((box) => box.right))];
  return isWithin({ top, bottom, left, right }, point);
}

/** The card is guarded as long as it is there, and does not take the focus along when it goes. */
export function useGuard(draft: Draft, card: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const { key } = draft;
    const element = card.current;
    if (!element) return;
    cards.set(key, element);
    observer.observe(element);
    observer.observe(document.body);
    note(key, element);
    return () => {
      if (draft.isSending.value) leave(key);
      else if (hasFocus(element)) focusHeading();
      observer.unobserve(element);
      cards.delete(key);
      heights.delete(key);
      guard.forget(key);
    };
  }, [draft, card]);
}

/** An answered card keeps its height while the hand is on the cards: the next one must not move from under it. */
export function useHeight({ key }: Draft, card: RefObject<HTMLElement | null>, isKept: boolean): void {
  const keeps = isKept && isHandOnCards.value;
  useLayoutEffect(() => {
    const height = heights.get(key);
    card.current?.style.setProperty("min-height", keeps && height !== undefined ? `${String(height)}px` : "");
  }, [key, card, keeps]);
}

/** Why a press now may be meant for another card; `press` is undefined of a key. */
export function doubtOf(key: string, press: MouseEvent | undefined): Doubt | undefined {
  // A click by a key has an event, too, without a count.
  const point = press && press.detail > 0 ? { x: press.clientX, y: press.clientY } : undefined;
  return guard.doubtOf(key, point, performance.now());
}

function hasFocus(card: HTMLElement): boolean {
  return card.contains(document.activeElement);
}

const OPEN = "[data-request]:not([data-answered])";

/** The card was answered here: the focus goes to the next one that waits, or the first, or else the view's own heading. */
export function leave(key: string): void {
  const from = cards.get(key);
  if (!from || !hasFocus(from)) return;
  const waiting = [...document.querySelectorAll<HTMLElement>(OPEN)].filter((each) => each !== from);
  const after = waiting.find((each) => from.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING);
  const target = after ?? waiting[0];
  if (!target) return focusHeading();
  guard.focus(target.dataset["request"] ?? "", performance.now());
  // A hand that is on the cards goes on by itself: nothing scrolls under it.
  target.focus({ preventScroll: isHandOnCards.value });
}

/** The request was answered elsewhere: typing must not continue in another card, where letters press buttons. */
export function stay(key: string): void {
  const card = cards.get(key);
  if (card && hasFocus(card)) card.focus();
}

/** The next of the cards on the page, or the one before. */
export function focusCard(by: 1 | -1): void {
  const waiting = [...document.querySelectorAll<HTMLElement>(OPEN)];
  const at = waiting.findIndex(hasFocus);
  const to = at === -1 ? 0 : Math.min(Math.max(at + by, 0), waiting.length - 1);
  waiting[to]?.focus();
}
