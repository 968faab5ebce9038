import type { EventType, SessionEvent } from "./event.ts";

/** Tables of decisions about events, by their types. */

type DataByType = { readonly [E in SessionEvent as E["type"]]: E["data"] };

/** The content of an event of type `T`. */
export type DataOf<T extends EventType> = DataByType[T];

/** Entry per event type, so that a new type does not compile until every such table has decided about the type. */
export type ByEventType<R, A extends unknown[] = []> = {
  readonly [T in EventType]: (data: DataOf<T>, ...about: A) => R;
};

/** An event by its type, so that the compiler sees which content belongs to which. */
export type Typed<T extends EventType = EventType> = {
  readonly [K in T]: { readonly type: K; readonly data: DataOf<K> };
}[T];

/** Decides about an event. A newer server may have written one of a type that no table knows: then the decision is undefined. */
export function decideBy<T extends EventType, R, A extends unknown[]>(
  table: ByEventType<R, A>,
  { data, type }: Typed<T>,
  ...about: A
): R | undefined {
  return Object.hasOwn(table, type) ? table[type](data, ...about) : undefined;
}
