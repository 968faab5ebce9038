import type { Counts } from "./counts.mjs";

export interface Habits {
  vanishes: () => number | undefined;
  rests: () => number;
  readLate: () => number;
  patienceMs?: number;
  waitMs?: number;
  until?: "news" | "event";
}

export class Watcher {
  constructor(given: {
    counts: Counts;
    door: { url: string; token: string };
    habits: Habits;
    kind: string;
    sessions: readonly string[];
  });
  readonly kind: string;
  readonly twice: number;
  readonly seen: ReadonlyMap<string, ReadonlyMap<number, string>>;
  follow(): Promise<void>;
  leave(): void;
}
