/** The options and results of the load that tests use. */
import type { Counts } from "./counts.mjs";

export interface Load {
  /** From `createWorld` in bench/world.mjs. */
  world: object;
  clients: number;
  sessions: number;
  maxLive: number;
  forMs: number;
  /** Of a poll; 20,000 by default. */
  waitMs?: number;
  progress: (text: string) => void;
}

export interface Found {
  counts: Counts;
  turns: number;
  asked: number;
  twice: number;
  logs: { events: number; holes: number; missed: number; changed: number; invented: number };
  /** Live memory, MB; `most` is the peak of the resident set. Undefined after a very short run. */
  thirds: { middle: number; last: number; most: number | undefined; growth: number } | undefined;
  /** Undefined where the system does not report it. */
  handlesMore: number | undefined;
  children: number;
  complaints: string[];
  exitCode: number | null;
}

export function load(given: Load): Promise<Found>;
