import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import { keysAreOn } from "../state/keys.ts";

/** Keys of the card that has the focus press its own buttons: nothing can be done by one that cannot be done by the other. */
export function useKeys(card: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = card.current;
    const onKeyDown = (event: KeyboardEvent) => pressByKey(event, element);
    element?.addEventListener("keydown", onKeyDown);
    return () => element?.removeEventListener("keydown", onKeyDown);
  }, [card]);
}

/** Whoever types means letters. */
const TYPED_IN = "input, textarea, select, [contenteditable]";

function pressByKey(event: KeyboardEvent, card: HTMLElement | null): void {
  const { target } = event;
  if (
    !keysAreOn.value ||
    event.repeat ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    !(target instanceof Element)
  )
    return;
  if (target.matches(TYPED_IN)) return;
  const button = card?.querySelector<HTMLButtonElement>(`button[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!button || button.disabled) return;
  event.preventDefault();
  button.click();
}
