import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { focusHeading } from "../state/focus.ts";
import type { Draft } from "./draft.ts";
import { MisclickGuard } from "./words/misclick-guard.ts";

/** Where the cards stand, so that nothing is pressed by mistake, and where the focus goes when one is dealt with. */

const guard = new MisclickGuard();
const cards = new Map<string, HTMLElement>();

/** All at once: a card that grows moves those below it. */
const observer = new ResizeObserver(noteAll);

function noteAll(): void {
  const now = performance.now();
  for (const [key, card] of cards) guard.note(key, card.getBoundingClientRect().top + scrollY, now);
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
    noteAll();
    return () => {
      if (draft.isSending.value) leave(key);
      else if (hasFocus(element)) focusHeading();
      observer.unobserve(element);
      cards.delete(key);
      guard.forget(key);
    };
  }, [draft, card]);
}

export function isDeliberate(key: string): boolean {
  return guard.isDeliberate(key, performance.now());
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
  guard.unsettle(target.dataset["request"] ?? "", performance.now());
  target.focus();
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
