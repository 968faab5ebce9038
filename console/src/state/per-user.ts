import { effect, signal, type Signal } from "@preact/signals";
import { me } from "./me.ts";

/**
 * What somebody has begun here. It is his: whoever signs in after him neither sees nor loses it, and where his sign-in only
 * ends it is there when he is back.
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
