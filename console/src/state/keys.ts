import { signal } from "@preact/signals";

/** Global keyboard shortcuts. They do nothing while a text is typed. */

const OFF = "claude-agents-mcp console keys off";

/** Users of dictation or typing aids can turn them off, those that are letters or signs. */
export const keysAreOn = signal(localStorage.getItem(OFF) === null);

export function turnKeys(on: boolean): void {
  keysAreOn.value = on;
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "1");
}

/** Handlers by key or by sequence of two keys: "?", "j", "g s". */
export type Keys = Readonly<Record<string, () => void>>;

const bound = new Set<Keys>();

/** Until the returned function is called. */
export function bindKeys(keys: Keys): () => void {
  bound.add(keys);
  return () => bound.delete(keys);
}

/** Maximum time between the two keys of a sequence, ms. */
const MAX_SEQUENCE_MS = 1500;

let first = { key: "", at: 0 };

/** Handles the shortcuts of all views. */
export function startKeys(): void {
  document.addEventListener("keydown", onKeyDown);
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const isNamed = event.key.length > 1;
  if (isNamed ? event.shiftKey || scrolls(event.target) : !keysAreOn.value) return;
  if (isTypedInto(event.target) || document.querySelector("dialog[open]")) return;
  const pair = event.timeStamp - first.at < MAX_SEQUENCE_MS ? `${first.key} ${event.key}` : event.key;
  first = { key: event.key, at: event.timeStamp };
  const act = actionOf(pair) ?? actionOf(event.key);
  if (!act) return;
  first = { key: "", at: 0 };
  event.preventDefault();
  act();
}

/** The latest binding wins. */
function actionOf(key: string): (() => void) | undefined {
  return [...bound].toReversed().find((keys) => Object.hasOwn(keys, key))?.[key];
}

/** What letters do something in by themselves. */
const TYPED_INTO = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]";

function isTypedInto(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TYPED_INTO) !== null;
}

/** A box with a scroll bar of its own, within which named keys go. */
function scrolls(target: EventTarget | null): boolean {
  if (!(target instanceof Element) || target.scrollHeight <= target.clientHeight) return false;
  return ["auto", "scroll"].includes(getComputedStyle(target).overflowY);
}

/** The search field takes the focus when it is next rendered. */
export const isSearchRequested = signal(false);
