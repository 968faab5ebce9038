/** The view's own heading has the focus: it is read from there. */
export function focusHeading(): void {
  const main = document.querySelector("main");
  const heading = main?.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  (heading ?? main)?.focus({ preventScroll: true });
}

/**
 * Moves the focus to the heading when the focused element is removed, until the returned function is called. Otherwise users of
 * keyboards and screen readers would be sent back to the beginning of the page.
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
  // A click beside all controls releases the focus.
  const events = ["focusin", "click"];
  for (const event of events) addEventListener(event, note, { capture: true });
  return () => {
    removals.disconnect();
    for (const event of events) removeEventListener(event, note, { capture: true });
  };
}
