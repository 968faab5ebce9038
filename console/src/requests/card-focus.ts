import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { focusHeading } from "../state/focus.ts";
import type { Draft } from "./draft.ts";
import { type Doubt, type Hand, isWithin, MisclickGuard, type Point } from "./words/misclick-guard.ts";

/** Tracks the places of the cards, against misclicks, and moves the focus when a card is answered. */

const guard = new MisclickGuard();
const cards = new Map<string, HTMLElement>();
const heights = new Map<string, number>();

let hand: Hand;
/** True while the pointer is over the cards or between them: no card may move then. */
const isPointerOnCards = signal(false);

/**
 * Notes all cards on each change of size, because a growing card moves the cards below. Waits for a frame, since the view may
 * scroll to keep cards in place.
 */
const observer = new ResizeObserver(() => requestAnimationFrame(noteAll));
addEventListener("scroll", noteAll, { passive: true });
for (const event of ["pointermove", "pointerdown"] as const) addEventListener(event, notePointer, { passive: true });
document.documentElement.addEventListener("pointerleave", () => (isPointerOnCards.value = false));

function noteAll(): void {
  for (const [key, card] of cards) noteCard(key, card);
}

function noteCard(key: string, card: HTMLElement): void {
  const box = card.getBoundingClientRect();
  heights.set(key, box.height);
  guard.note(key, box, { hand, scrolled: scrollY, now: performance.now() });
}

function notePointer({ clientX: x, clientY: y, pointerType }: PointerEvent): void {
  const isFinger = pointerType === "touch";
  hand = isFinger ? "anywhere" : { x, y };
  isPointerOnCards.value = !isFinger && isAmongCards({ x, y });
}

function isAmongCards(point: Point): boolean {
  const boxes = [...cards.values()].map((card) => card.getBoundingClientRect());
  const [top, left] = [Math.min(...boxes.map((box) => box.top)), Math.min(...boxes.map((box) => box.left))];
  const [bottom, right] = [Math.max(...boxes.map((box) => box.bottom)), Math.max(...boxes.map((box) => box.right))];
  return isWithin({ top, bottom, left, right }, point);
}

/** Guards the card while mounted. An unmounted card passes the focus on, with `focusNextCard` or `focusHeading`. */
export function useGuard(draft: Draft, card: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const { key } = draft;
    const element = card.current;
    if (!element) return;
    cards.set(key, element);
    observer.observe(element);
    observer.observe(document.body);
    noteCard(key, element);
    return () => {
      if (draft.isSending.value) focusNextCard(key);
      else if (hasFocus(element)) focusHeading();
      observer.unobserve(element);
      cards.delete(key);
      heights.delete(key);
      guard.forget(key);
    };
  }, [draft, card]);
}

/**
 * Keeps the height of an answered card while the pointer is on the cards, so that the next card does not move under the
 * pointer.
 */
export function useHeight({ key }: Draft, card: RefObject<HTMLElement | null>, isKept: boolean): void {
  const keeps = isKept && isPointerOnCards.value;
  useLayoutEffect(() => {
    const height = heights.get(key);
    card.current?.style.setProperty("min-height", keeps && height !== undefined ? `${String(height)}px` : "");
  }, [key, card, keeps]);
}

/** Reason why a press may be meant for another card; `press` is `undefined` for a shortcut. */
export function doubtOf(key: string, press: MouseEvent | undefined): Doubt | undefined {
  // `detail` is 0 for a click made with the keyboard.
  const point = press && press.detail > 0 ? { x: press.clientX, y: press.clientY } : undefined;
  return guard.doubtOf(key, point, performance.now());
}

function hasFocus(card: HTMLElement): boolean {
  return card.contains(document.activeElement);
}

const OPEN = "[data-request]:not([data-answered])";

/** Moves the focus of an answered card to the next open card, otherwise to the first, otherwise to the heading of the view. */
export function focusNextCard(key: string): void {
  const from = cards.get(key);
  if (!from || !hasFocus(from)) return;
  const waiting = [...document.querySelectorAll<HTMLElement>(OPEN)].filter((each) => each !== from);
  const after = waiting.find((each) => from.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING);
  const target = after ?? waiting[0];
  if (!target) return focusHeading();
  guard.focus(target.dataset["request"] ?? "", performance.now());
  // Does not scroll under a pointer on the cards: the user moves on alone.
  target.focus({ preventScroll: isPointerOnCards.value });
}

/** Moves the focus to the card itself after an answer elsewhere: in another card, typed letters would press buttons. */
export function focusOwnCard(key: string): void {
  const card = cards.get(key);
  if (card && hasFocus(card)) card.focus();
}

/** Focuses the next open card (`by` 1) or the previous card (-1). */
export function focusCard(by: 1 | -1): void {
  const waiting = [...document.querySelectorAll<HTMLElement>(OPEN)];
  const at = waiting.findIndex(hasFocus);
  const to = at === -1 ? 0 : Math.min(Math.max(at + by, 0), waiting.length - 1);
  waiting[to]?.focus();
}
