/** Where the reader is in a list that is put to at both ends. The page itself scrolls. */

/** So near to the end counts as there, px. */
const NEAR_END = 60;
/** So near to what is not loaded it is loaded, px. */
const NEAR_EDGE = 1_200;

export function isAtEnd(): boolean {
  return belowView() < NEAR_END;
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

/** The first of the list's children that is in view. To be taken before the list changes. */
export function anchorOf(list: Element | null): Anchor | undefined {
  for (const element of list?.children ?? []) {
    const { bottom, top } = element.getBoundingClientRect();
    if (bottom > 0) return { element, top };
  }
  return undefined;
}

/** Puts what was in view back where it was, whatever has come or gone above it. */
export function hold({ element, top }: Anchor): void {
  if (!element.isConnected) return;
  const moved = element.getBoundingClientRect().top - top;
  if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
}
