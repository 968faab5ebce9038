import type { EventType, SessionEvent } from "./event.ts";

/** Tables with a decision for each type of event. */

type DataByType = { readonly [E in SessionEvent as E["type"]]: E["data"] };

/** Content of an event of type `T`. */
export type DataOf<T extends EventType> = DataByType[T];

/** Table with an entry per event type, so that a new type does not compile until every table has an entry for it. */
export type ByEventType<R, A extends unknown[] = []> = {
  readonly [T in EventType]: (data: DataOf<T>, ...about: A) => R;
};

/** Event as a union by `type`, so that the compiler pairs each `type` with its `data`. */
export type TypedEvent<T extends EventType = EventType> = {
  readonly [K in T]: { readonly type: K; readonly data: DataOf<K> };
}[T];

/** Applies the entry for the event's type. Returns `undefined` for an unknown type, which a newer server has written. */
export function decideBy<T extends EventType, R, A extends unknown[]>(
  table: ByEventType<R, A>,
  { data, type }: TypedEvent<T>,
  ...about: A
): R | undefined {
  return Object.hasOwn(table, type) ? table[type](data, ...about) : undefined;
}
