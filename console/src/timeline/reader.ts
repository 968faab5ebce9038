import { signal, type ReadonlySignal } from "@preact/signals";
import type { EventWindow } from "./event-window.ts";
import {
  focusedIn,
  restoreAnchor,
  hasOpenRequest,
  isAtEnd,
  isAtNews,
  isNearEnd,
  isNearStart,
  restoreLine,
  findLine,
  scrollToEnd,
  scrollToNews,
  type Anchor,
  type LinePlace,
} from "./scroll.ts";

/** Dispatched by opened content that grows, such as a loaded picture. */
export const GROWS = "grows";
const OPENING = ["click", GROWS];

/**
 * Tracks where the reader is. At the end, new items scroll into view, an open request up to its top. Elsewhere, nothing moves.
 */
export class Reader {
  readonly #eventWindow: EventWindow;
  readonly #section: HTMLElement;
  readonly #isAway = signal(false);
  readonly #seen = signal(0);
  #top = 0;
  /**
   * Entry or line at the top of the view and, in `#focused`, the focused element. Both are kept in place when the window is
   * resized.
   */
  #place: LinePlace | undefined;
  #focused: Element | undefined;
  readonly #size = new ResizeObserver(() => this.#onGrowth());

  constructor(eventWindow: EventWindow, section: HTMLElement) {
    this.#eventWindow = eventWindow;
    this.#section = section;
    addEventListener("scroll", this.#onScroll, { passive: true });
    addEventListener("resize", this.#onResize);
    addEventListener("focusin", this.#noteFocus);
    for (const event of OPENING) section.addEventListener(event, this.#onOpening);
    // Observes the parent, because the header and the footer grow too.
    this.#size.observe(section.parentElement ?? section);
  }

  close(): void {
    removeEventListener("scroll", this.#onScroll);
    removeEventListener("resize", this.#onResize);
    removeEventListener("focusin", this.#noteFocus);
    for (const event of OPENING) this.#section.removeEventListener(event, this.#onOpening);
    this.#size.disconnect();
  }

  get isAway(): ReadonlySignal<boolean> {
    return this.#isAway;
  }

  /** Newest event when the view was last at the end, for "New activity". */
  get seen(): ReadonlySignal<number> {
    return this.#seen;
  }

  get isAtEnd(): boolean {
    return this.#eventWindow.readerIsAtEnd;
  }

  /** Call after the list was drawn. Puts `anchor` back in place, or follows the end. */
  settle(anchor: Anchor | undefined): void {
    if (anchor) restoreAnchor(anchor);
    else if (this.isAtEnd) this.#followEnd();
    this.#remember();
    this.#loadNear();
  }

  async toEnd(): Promise<void> {
    const extent = this.#eventWindow.extent.value;
    this.#eventWindow.readerIsAtEnd = true;
    if (extent?.last !== extent?.newest) await this.#eventWindow.goTo();
    scrollToEnd();
    this.#onScroll();
  }

  async toStart(): Promise<void> {
    this.#stopFollowing();
    if (this.#eventWindow.extent.value?.first !== 1) await this.#eventWindow.goTo(1);
    requestAnimationFrame(() => scrollTo({ top: 0, behavior: "instant" }));
  }

  /** Stops following the end and loads the event if necessary. */
  async prepareFor(eventId: number): Promise<void> {
    this.#stopFollowing();
    const extent = this.#eventWindow.extent.value;
    const isNear = extent !== undefined && extent.first <= eventId && eventId <= extent.last;
    if (!isNear) await this.#eventWindow.goTo(eventId);
  }

  #followEnd(): void {
    scrollToNews(this.#section);
    this.#top = scrollY;
    this.#note(true);
  }

  /** Stops following the end, so that the view no longer moves. */
  #stopFollowing(): void {
    this.#eventWindow.readerIsAtEnd = false;
    this.#note(false);
  }

  /** Loads the next page if the view is near an edge of the window. */
  #loadNear(): void {
    if (isNearStart(this.#section)) void this.#eventWindow.loadOlder();
    if (isNearEnd()) void this.#eventWindow.loadNewer();
  }

  readonly #onScroll = () => {
    const extent = this.#eventWindow.extent.value;
    const top = scrollY;
    // Unchanged if the view has not moved: new entries below do not scroll the page, only the user does.
    const stays = this.isAtEnd && top >= this.#top - 1 && (top <= this.#top + 1 || !hasOpenRequest(this.#section));
    this.#top = top;
    const isLoaded = extent?.last === extent?.newest;
    this.#eventWindow.readerIsAtEnd = isLoaded && (stays || isAtNews(this.#section));
    this.#note(isLoaded && (this.isAtEnd || isAtEnd()));
    this.#remember();
    this.#loadNear();
  };

  /** Keeps the end or `#place` in view when a phone is turned, a window is resized or a keyboard appears. */
  readonly #onResize = () => {
    if (this.isAtEnd) scrollToNews(this.#section);
    else if (this.#place) restoreLine(this.#place);
    this.#top = scrollY;
    const focused = this.#focused;
    if (focused && focused === document.activeElement)
      focused.scrollIntoView({ block: "nearest", behavior: "instant" });
  };

  #remember(): void {
    this.#place = this.isAtEnd ? undefined : findLine(this.#section);
    this.#noteFocus();
  }

  readonly #noteFocus = () => {
    this.#focused = focusedIn(this.#section, this.#section.nextElementSibling);
  };

  /** Stops following the end when the user opens content there, so that the content is read from its beginning. */
  readonly #onOpening = () => {
    if (!this.#eventWindow.readerIsAtEnd) return;
    this.#eventWindow.readerIsAtEnd = false;
    requestAnimationFrame(() => requestAnimationFrame(this.#onScroll));
  };

  #onGrowth(): void {
    if (this.isAtEnd) this.#followEnd();
  }

  #note(isHere: boolean): void {
    this.#isAway.value = !isHere;
    if (isHere) this.#seen.value = this.#eventWindow.extent.value?.newest ?? 0;
  }
}
