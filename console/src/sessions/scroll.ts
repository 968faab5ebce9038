/**
 * "Back" from a session comes to the place in the list that one has left: it stands in the entry of the history, so that a
 * link to the list begins at its top.
 */
export function keepScroll(): () => void {
  const state: unknown = history.state;
  if (typeof state === "object" && state !== null && "scrolled" in state) scrollTo(0, Number(state.scrolled));
  const remember = () => history.replaceState({ scrolled: scrollY }, "");
  addEventListener("scrollend", remember);
  return () => removeEventListener("scrollend", remember);
}
