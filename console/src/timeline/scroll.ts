/** Geometry of the timeline, which grows at both ends. The page itself scrolls. */

/** Maximum distance from the end that counts as at the end, px. */
const NEAR_END = 60;
/** Distance from an edge at which the next page is loaded, px. */
const NEAR_EDGE = 1_200;

export function isAtEnd(): boolean {
  return belowView() < NEAR_END;
}

const OPEN = "[data-request]:not([data-answered])";

export function hasOpenRequest(section: Element): boolean {
  return section.querySelector(OPEN) !== null;
}

/** True if `scrollToNews` would move the page by less than `NEAR_END`. */
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

/** Distance by which `card` is scrolled above its place below the sticky header, px; negative if `card` starts lower. */
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

/** Element at the top of the view, and its distance from the top, px. */
export interface Anchor {
  readonly element: Element;
  readonly top: number;
}

/** Finds an open request in view, which must not move while the user reads and answers. */
export function cardInView(section: Element): Anchor | undefined {
  for (const element of section.querySelectorAll(OPEN)) {
    const { bottom, top } = element.getBoundingClientRect();
    if (bottom > 0 && top < innerHeight) return { element, top };
  }
  return undefined;
}

/** Finds the first child of `list` in view. Call before the list changes. */
export function findAnchor(list: Element | null): Anchor | undefined {
  const children = list?.children ?? [];
  // Binary search, because children are stacked: measures few of hundreds.
  let [low, high] = [0, children.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((children[middle]?.getBoundingClientRect().bottom ?? 0) > 0) high = middle;
    else low = middle + 1;
  }
  const element = children[low];
  return element && { element, top: element.getBoundingClientRect().top };
}

/** Scrolls `element` back to its former place, whatever has changed above. */
export function restoreAnchor({ element, top }: Anchor): void {
  if (!element.isConnected) return;
  const moved = element.getBoundingClientRect().top - top;
  if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
}

/** Line or entry in the view, for `restoreLine`. */
export interface LinePlace {
  /** Former distance from the top of the view, px. */
  readonly top: number;
  /** Current distance, px; `undefined` if the element is gone. */
  readonly now: () => number | undefined;
}

/** Finds the first line of `section` in view, below the sticky header. */
export function findLine(section: Element): LinePlace | undefined {
  const head = section.previousElementSibling?.getBoundingClientRect();
  const { left, top: start } = section.getBoundingClientRect();
  const from = Math.max(0, head?.bottom ?? 0, start) + BELOW_HEAD;
  const line = lineAt(left + FROM_LEFT, from, section);
  if (line) return line;
  const anchor = findAnchor(section.querySelector("ol"));
  const now = () => (anchor?.element.isConnected ? anchor.element.getBoundingClientRect().top : undefined);
  return anchor && { top: anchor.top, now };
}

/** Offsets at which the first line has certainly begun, px: below the header, and from the left edge. */
const [BELOW_HEAD, FROM_LEFT] = [12, 48];

function lineAt(x: number, y: number, section: Element): LinePlace | undefined {
  // Browsers of 2024 lack `caretPositionFromPoint`.
  const found = "caretPositionFromPoint" in document ? document.caretPositionFromPoint(x, y) : null;
  if (!found || found.offsetNode.nodeType !== Node.TEXT_NODE || !section.contains(found.offsetNode)) return undefined;
  const range = document.createRange();
  range.setStart(found.offsetNode, found.offset);
  const now = () => (range.startContainer.isConnected ? range.getBoundingClientRect().top : undefined);
  return { top: range.getBoundingClientRect().top, now };
}

/** Scrolls the line back to its former place. */
export function restoreLine({ now, top }: LinePlace): void {
  const at = now();
  if (at !== undefined && Math.abs(at - top) >= 1) scrollBy({ top: at - top, behavior: "instant" });
}

/** Returns the focused element if inside `sections` and at least partly in view. */
export function focusedIn(...sections: readonly (Element | null)[]): Element | undefined {
  const focused = document.activeElement;
  if (!focused || !sections.some((section) => section?.contains(focused))) return undefined;
  const { bottom, top } = focused.getBoundingClientRect();
  return bottom > 0 && top < innerHeight ? focused : undefined;
}
