/** What tests know of the load. */
import type { Counts } from "./counts.mjs";

export interface Load {
  /** Of `createWorld` in bench/world.mjs. */
  world: object;
  clients: number;
  sessions: number;
  maxLive: number;
  forMs: number;
  progress: (text: string) => void;
}

export interface Found {
  counts: Counts;
  turns: number;
  asked: number;
  twice: number;
  logs: { events: number; holes: number; missed: number; changed: number; invented: number };
  /** Of what lives in memory, MB; `most` is what the process had of the system. Undefined after a very short time. */
  thirds: { middle: number; last: number; most: number | undefined; growth: number } | undefined;
  /** Undefined where the system does not tell. */
  handlesMore: number | undefined;
  children: number;
  complaints: string[];
  exitCode: number | null;
}

export function load(given: Load): Promise<Found>;
