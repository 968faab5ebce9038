/**
 * Scroll position of the list, so that "back" from a session shows the opened row where the user left it, even if the list has
 * changed. Stored in `history.state`, so that a link to the list starts at the top.
 */
interface SavedPlace {
  readonly scrolled: number;
  /** Link of the opened row, and distance from the top of the window, px. */
  readonly row?: { readonly href: string; readonly top: number };
}

const ROW = "a[data-row]";

export interface PlaceRestorer {
  /** Scrolls to the saved place. Call after each render of the list. */
  readonly restore: () => void;
  readonly end: () => void;
}

export function startPlaceRestorer(): PlaceRestorer {
  let saved = readSavedPlace(history.state);
  let hasFocused = false;
  const remember = (row?: SavedPlace["row"]) => {
    const state: SavedPlace = { scrolled: scrollY, ...(row && { row }) };
    history.replaceState(state, "");
  };
  const onScrollEnd = () => remember(readSavedPlace(history.state)?.row);
  // Stops restoring once the user scrolls, clicks or types.
  const onAct = () => {
    saved = undefined;
  };
  const onClick = ({ target }: Event) => {
    const link = target instanceof Element ? (target.closest("li")?.querySelector(ROW) ?? undefined) : undefined;
    const href = link?.getAttribute("href") ?? undefined;
    if (link && href !== undefined) remember({ href, top: link.getBoundingClientRect().top });
  };
  addEventListener("scrollend", onScrollEnd);
  addEventListener("click", onClick, { capture: true });
  for (const event of ACTS) addEventListener(event, onAct, { capture: true, passive: true });
  const restore = () => {
    if (!saved) return;
    const { row, scrolled } = saved;
    const link = row && document.querySelector<HTMLElement>(`${ROW}[href="${CSS.escape(row.href)}"]`);
    if (!link) return scrollTo({ top: scrolled, behavior: "instant" });
    if (!hasFocused) link.focus({ preventScroll: true });
    hasFocused = true;
    scrollBy({ top: link.getBoundingClientRect().top - row.top, behavior: "instant" });
  };
  const end = () => {
    removeEventListener("scrollend", onScrollEnd);
    removeEventListener("click", onClick, { capture: true });
    for (const event of ACTS) removeEventListener(event, onAct, { capture: true });
  };
  return { restore, end };
}

const ACTS = ["wheel", "touchmove", "pointerdown", "keydown"];

function readSavedPlace(state: unknown): SavedPlace | undefined {
  if (typeof state !== "object" || state === null || !("scrolled" in state)) return undefined;
  const scrolled = Number(state.scrolled);
  const row = "row" in state && typeof state.row === "object" && state.row !== null ? state.row : {};
  if (!("href" in row) || !("top" in row)) return { scrolled };
  return { scrolled, row: { href: String(row.href), top: Number(row.top) } };
}
