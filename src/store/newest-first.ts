/** Position of a session in a list. */
export interface ListPosition {
  readonly updatedAt: number;
  readonly id: string;
}

/** Orders newest first, equally new sessions by descending id, so that a page can continue after the last session (keyset). */
export function newestFirst(a: ListPosition, b: ListPosition): number {
  if (a.updatedAt !== b.updatedAt) return b.updatedAt - a.updatedAt;
  if (a.id === b.id) return 0;
  return a.id < b.id ? 1 : -1;
}
