/** Where a session stands in a list. */
export interface Place {
  readonly updatedAt: number;
  readonly id: string;
}

/** Newest first; of equally new ones the greater id, so that a page can go on where the last one ended. */
export function newestFirst(a: Place, b: Place): number {
  if (a.updatedAt !== b.updatedAt) return b.updatedAt - a.updatedAt;
  if (a.id === b.id) return 0;
  return a.id < b.id ? 1 : -1;
}
