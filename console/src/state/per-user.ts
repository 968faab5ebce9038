import { effect, signal, type Signal } from "@preact/signals";
import { me } from "./me.ts";

/**
 * Returns a signal with state of the signed-in user, such as drafts. Another user starts with `empty()`; the state returns when
 * its user signs in again.
 */
export function perUser<T>(empty: () => T): Signal<T> {
  const kept = new Map<string, T>();
  const current = signal(empty());
  let owner: string | undefined;
  effect(() => {
    const principal = me.value?.principal;
    if (principal === undefined || principal === owner) return;
    if (owner !== undefined) kept.set(owner, current.peek());
    current.value = kept.get(principal) ?? empty();
    owner = principal;
  });
  return current;
}
