/** The view's own heading has the focus: it is read from there. */
export function focusHeading(): void {
  const main = document.querySelector("main");
  const heading = main?.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  (heading ?? main)?.focus({ preventScroll: true });
}

/**
 * Where what has the focus is taken away, the heading gets it, until the returned function is called: whoever goes by keys
 * or by ear would be sent back to the beginning of the page.
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
  // Whoever presses beside everything has let the focus go himself.
  const events = ["focusin", "click"];
  for (const event of events) addEventListener(event, note, { capture: true });
  return () => {
    removals.disconnect();
    for (const event of events) removeEventListener(event, note, { capture: true });
  };
}
