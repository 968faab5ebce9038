import { signal } from "@preact/signals";

/** Global keyboard shortcuts, inactive while the user types text. */

const OFF = "claude-agents-mcp console keys off";

/**
 * False if the user turned off shortcuts of single characters, for example because of dictation software. Named keys such as
 * Home stay on.
 */
export const keysAreOn = signal(localStorage.getItem(OFF) === null);

export function switchKeys(on: boolean): void {
  keysAreOn.value = on;
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "1");
}

/** Handlers by key or by sequence of two keys: "?", "j", "g s". */
export type Keys = Readonly<Record<string, () => void>>;

const bound = new Set<Keys>();

/** Binds `keys` until the returned function is called. */
export function bindKeys(keys: Keys): () => void {
  bound.add(keys);
  return () => bound.delete(keys);
}

/** Maximum time between the two keys of a sequence, ms. */
const MAX_SEQUENCE_MS = 1500;

let first = { key: "", at: 0 };

export function startKeys(): void {
  document.addEventListener("keydown", onKeyDown);
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const isNamed = event.key.length > 1;
  if (isNamed ? event.shiftKey || isScrollable(event.target) : !keysAreOn.value) return;
  if (isTypedInto(event.target) || document.querySelector("dialog[open]")) return;
  const pair = event.timeStamp - first.at < MAX_SEQUENCE_MS ? `${first.key} ${event.key}` : event.key;
  first = { key: event.key, at: event.timeStamp };
  const act = findAction(pair) ?? findAction(event.key);
  if (!act) return;
  first = { key: "", at: 0 };
  event.preventDefault();
  act();
}

/** The latest binding wins. */
function findAction(key: string): (() => void) | undefined {
  return [...bound].toReversed().find((keys) => Object.hasOwn(keys, key))?.[key];
}

/** Elements that handle letter keys themselves. */
const TYPED_INTO = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]";

function isTypedInto(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TYPED_INTO) !== null;
}

/** True for a scrollable box, which handles keys such as Home and End itself. */
function isScrollable(target: EventTarget | null): boolean {
  if (!(target instanceof Element) || target.scrollHeight <= target.clientHeight) return false;
  return ["auto", "scroll"].includes(getComputedStyle(target).overflowY);
}

/** Set to move the focus to `SearchField` at its next render. */
export const isSearchRequested = signal(false);
