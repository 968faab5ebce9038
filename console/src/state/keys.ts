import { signal } from "@preact/signals";

/** Keys that do something wherever the focus is, unless somebody types. */

const OFF = "claude-agents-mcp console keys off";

/** They can be turned off: who dictates, or types with aids, sets them off unawares. */
export const keysAreOn = signal(localStorage.getItem(OFF) === null);

export function turnKeys(on: boolean): void {
  keysAreOn.value = on;
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "1");
}

/** By the key, or by two in turn: "?", "j", "g s". */
export type Keys = Readonly<Record<string, () => void>>;

const bound = new Set<Keys>();

/** Until the returned function is called. */
export function bindKeys(keys: Keys): () => void {
  bound.add(keys);
  return () => bound.delete(keys);
}

/** The second of two keys comes within so long, ms. */
const PATIENCE_MS = 1500;

let first = { key: "", at: 0 };

document.addEventListener("keydown", (event) => {
  if (!keysAreOn.value || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTypedInto(event.target) || document.querySelector("dialog[open]")) return;
  const pair = event.timeStamp - first.at < PATIENCE_MS ? `${first.key} ${event.key}` : event.key;
  first = { key: event.key, at: event.timeStamp };
  const act = actionOf(pair) ?? actionOf(event.key);
  if (!act) return;
  first = { key: "", at: 0 };
  event.preventDefault();
  act();
});

/** What was bound last goes first. */
function actionOf(key: string): (() => void) | undefined {
  return [...bound].toReversed().find((keys) => Object.hasOwn(keys, key))?.[key];
}

/** What letters do something in by themselves. */
const TYPED_INTO = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]";

function isTypedInto(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TYPED_INTO) !== null;
}

/** The search field is to have the focus as soon as it is there. */
export const searchIsWanted = signal(false);
