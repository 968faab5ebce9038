export interface Stored {
  id: number;
  type: string;
  data: Record<string, unknown>;
}

export function compare(
  events: readonly Stored[],
  watchers: readonly ReadonlyMap<number, string>[],
): { holes: number; missed: number; changed: number; invented: number };
