/** Moves the focus to the view's `h1`, so that screen readers continue there. */
export function focusHeading(): void {
  const main = document.querySelector("main");
  const heading = main?.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  (heading ?? main)?.focus({ preventScroll: true });
}

/**
 * Calls `focusHeading` when the focused element is removed, until the returned function is called. Otherwise users of keyboards
 * and screen readers would start again at the top of the page.
 */
export function keepFocus(): () => void {
  let last: Element | null = null;
  const note = () => {
    last = document.activeElement;
  };
  const removals = new MutationObserver(() => {
    if (!last || last.isConnected || document.activeElement !== document.body) return;
    last = null;
    focusHeading();
  });
  removals.observe(document.body, { childList: true, subtree: true });
  // Includes clicks, because a click beside all controls releases the focus.
  const events = ["focusin", "click"];
  for (const event of events) addEventListener(event, note, { capture: true });
  return () => {
    removals.disconnect();
    for (const event of events) removeEventListener(event, note, { capture: true });
  };
}
