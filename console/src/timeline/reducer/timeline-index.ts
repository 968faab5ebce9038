import type { CallItem, Item } from "./item.ts";

/**
 * Items in lists: the session's own, and a list for each call with a subagent. A change creates a new object for the item and
 * for all calls above; unchanged items stay identical, so that they are not drawn again.
 */
export class TimelineIndex {
  /** Lists by id of the call; "" for the session's own. */
  readonly #lists = new Map<string, Item[]>([["", []]]);
  readonly #places = new Map<string, { readonly parent: string; readonly index: number }>();
  readonly #hidden = new Set<string>();
  #top: readonly Item[] | undefined;

  get top(): readonly Item[] {
    this.#top ??= this.#listOf("").filter(({ key }) => !this.#hidden.has(key));
    return this.#top;
  }

  /** Ignores an item with a known key, because an event may come twice. */
  add(item: Item, parent: string): void {
    if (this.#places.has(item.key)) return;
    const list = this.#listOf(parent);
    this.#places.set(item.key, { parent, index: list.length });
    list.push(item);
    this.#touch(parent);
  }

  get(key: string): Item | undefined {
    const place = this.#places.get(key);
    return place && this.#listOf(place.parent)[place.index];
  }

  call(id: string): CallItem | undefined {
    const item = this.get(callKey(id));
    return item?.kind === "call" ? item : undefined;
  }

  /** Id of the call whose list has the item; "" for the session's own list. */
  parentOf(key: string): string {
    return this.#places.get(key)?.parent ?? "";
  }

  put(item: Item): void {
    const place = this.#places.get(item.key);
    if (!place) return;
    this.#listOf(place.parent)[place.index] = item;
    this.#touch(place.parent);
  }

  /** Removes a top-level item from `top`, because another item shows its content. */
  hide(key: string): void {
    this.#hidden.add(key);
    this.#touch("");
  }

  *all(): IterableIterator<Item> {
    for (const list of this.#lists.values()) yield* list;
  }

  #listOf(parent: string): Item[] {
    const found = this.#lists.get(parent);
    if (found) return found;
    const list: Item[] = [];
    this.#lists.set(parent, list);
    return list;
  }

  #touch(parent: string): void {
    if (parent === "") this.#top = undefined;
    const call = parent === "" ? undefined : this.call(parent);
    if (call) this.put({ ...call, children: [...this.#listOf(parent)] });
  }
}

export function callKey(id: string): string {
  return `call ${id}`;
}
