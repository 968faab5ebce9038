import { effect, signal, type Signal } from "@preact/signals";
import { me } from "./me.ts";

/**
 * State of one user, such as drafts. Another user who signs in neither sees nor changes it, and it is restored when the user
 * signs in again.
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
