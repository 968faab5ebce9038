/** Options and results of `load`, for tests. */
import type { Counts } from "./counts.mjs";

export interface Load {
  /** From `createWorld` in bench/world.mjs. */
  world: object;
  clients: number;
  sessions: number;
  maxLive: number;
  forMs: number;
  /** Length of a poll, ms. Default: 20,000. */
  waitMs?: number;
  progress: (text: string) => void;
}

export interface Found {
  counts: Counts;
  turns: number;
  asked: number;
  twice: number;
  logs: { events: number; holes: number; missed: number; changed: number; invented: number };
  /** Live memory, MB; `most` is the peak of the resident set. `undefined` after a very short run. */
  thirds: { middle: number; last: number; most: number | undefined; growth: number } | undefined;
  /** `undefined` if the system does not report open handles. */
  handlesMore: number | undefined;
  children: number;
  complaints: string[];
  exitCode: number | null;
}

export function load(given: Load): Promise<Found>;
