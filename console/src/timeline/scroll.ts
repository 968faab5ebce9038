/** Where the reader is in a list that is put to at both ends. The page itself scrolls. */

/** So near to the end counts as there, px. */
const NEAR_END = 60;
/** So near to what is not loaded it is loaded, px. */
const NEAR_EDGE = 1_200;

export function isAtEnd(): boolean {
  return belowView() < NEAR_END;
}

const OPEN = "[data-request]:not([data-answered])";

/** Something waits for an answer in it. */
export function isAsked(section: Element): boolean {
  return section.querySelector(OPEN) !== null;
}

/** The place of a reader who follows: the end, but no further than the top of what waits for an answer. */
export function isAtNews(section: Element): boolean {
  const card = section.querySelector(OPEN);
  if (!card || isAtEnd()) return isAtEnd() && (!card || belowTop(card) < NEAR_END);
  return Math.abs(belowTop(card)) < NEAR_END;
}

export function scrollToNews(section: Element): void {
  const card = section.querySelector(OPEN);
  if (card) card.scrollIntoView({ block: "start", behavior: "instant" });
  else scrollToEnd();
}

/** Returns how far the view has gone beyond the place in which the card is read from its top, px. */
function belowTop(card: Element): number {
  const { scrollMarginTop } = getComputedStyle(card);
  const { scrollPaddingTop } = getComputedStyle(document.documentElement);
  return Number.parseFloat(scrollMarginTop) + Number.parseFloat(scrollPaddingTop) - card.getBoundingClientRect().top;
}

export function isNearStart(list: Element): boolean {
  return list.getBoundingClientRect().top > -NEAR_EDGE;
}

export function isNearEnd(): boolean {
  return belowView() < NEAR_EDGE;
}

function belowView(): number {
  const { clientHeight, scrollHeight, scrollTop } = document.documentElement;
  return scrollHeight - clientHeight - scrollTop;
}

export function scrollToEnd(): void {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
}

/** What is at the top of the view, and how far down it is. */
export interface Anchor {
  readonly element: Element;
  readonly top: number;
}

/** Finds what waits for an answer and is in view: while it is read and answered nothing moves it. */
export function cardInView(section: Element): Anchor | undefined {
  for (const element of section.querySelectorAll(OPEN)) {
    const { bottom, top } = element.getBoundingClientRect();
    if (bottom > 0 && top < innerHeight) return { element, top };
  }
  return undefined;
}

/** The first of the list's children that is in view. To be taken before the list changes. */
export function anchorOf(list: Element | null): Anchor | undefined {
  const children = list?.children ?? [];
  // They stand one below the other: of hundreds, few are looked at.
  let [low, high] = [0, children.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((children[middle]?.getBoundingClientRect().bottom ?? 0) > 0) high = middle;
    else low = middle + 1;
  }
  const element = children[low];
  return element && { element, top: element.getBoundingClientRect().top };
}

/** Puts what was in view back where it was, whatever has come or gone above it. */
export function hold({ element, top }: Anchor): void {
  if (!element.isConnected) return;
  const moved = element.getBoundingClientRect().top - top;
  if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
}

/** A place in what is read. */
export interface Place {
  /** How far down it was, px. */
  readonly top: number;
  /** How far down it is now; undefined where it is not there any more. */
  readonly now: () => number | undefined;
}

/** The line at the top of what is in view of the section, below what stays in view above it. */
export function placeIn(section: Element): Place | undefined {
  const head = section.previousElementSibling?.getBoundingClientRect();
  const { left, top: start } = section.getBoundingClientRect();
  const from = Math.max(0, head?.bottom ?? 0, start) + BELOW_HEAD;
  const line = lineAt(left + FROM_LEFT, from, section);
  if (line) return line;
  const anchor = anchorOf(section.querySelector("ol"));
  const now = () => (anchor?.element.isConnected ? anchor.element.getBoundingClientRect().top : undefined);
  return anchor && { top: anchor.top, now };
}

/** Where a first line has begun for sure, px. */
const [BELOW_HEAD, FROM_LEFT] = [12, 48];

function lineAt(x: number, y: number, section: Element): Place | undefined {
  // Browsers of 2024 have it not.
  const found = "caretPositionFromPoint" in document ? document.caretPositionFromPoint(x, y) : null;
  if (!found || found.offsetNode.nodeType !== Node.TEXT_NODE || !section.contains(found.offsetNode)) return undefined;
  const range = document.createRange();
  range.setStart(found.offsetNode, found.offset);
  const now = () => (range.startContainer.isConnected ? range.getBoundingClientRect().top : undefined);
  return { top: range.getBoundingClientRect().top, now };
}

/** Puts the line that was read back where it was. */
export function keep({ now, top }: Place): void {
  const at = now();
  if (at !== undefined && Math.abs(at - top) >= 1) scrollBy({ top: at - top, behavior: "instant" });
}

/** What has the focus, if that is within these and any of it is in view. */
export function focusedIn(...sections: readonly (Element | null)[]): Element | undefined {
  const focused = document.activeElement;
  if (!focused || !sections.some((section) => section?.contains(focused))) return undefined;
  const { bottom, top } = focused.getBoundingClientRect();
  return bottom > 0 && top < innerHeight ? focused : undefined;
}
