import type { Clock } from "../../../src/engine/ports.ts";
import { T0 } from "./walk.ts";

/** A command to another node takes several turns of the event loop. */
const TURNS = 10;

async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A clock moved by a test. */
export class ManualClock implements Clock {
  #tick = 0;
  #setBy = 0;
  #slept = 0;
  readonly #alarms = new Set<{ due: number; callback: () => void }>();

  now = (): number => T0 + this.#tick + this.#setBy;
  tick = (): number => this.#tick;
  elapsed = (): number => this.#tick + this.#slept;

  after = (ms: number, callback: () => void): (() => void) => {
    const alarm = { due: this.#tick + ms, callback };
    this.#alarms.add(alarm);
    return () => this.#alarms.delete(alarm);
  };

  /** Sets the system clock or lets the machine sleep: `tick` does not advance. */
  set(byMs: number): void {
    this.#setBy += byMs;
  }

  /** Freezes the node, or lets the machine sleep: only `now` and `elapsed` advance. */
  freeze(ms: number): void {
    this.#setBy += ms;
    this.#slept += ms;
  }

  /** Advances while the nodes live: before and after each step of at most 5 s, due work gets turns of the event loop. */
  async pass(ms: number): Promise<void> {
    const end = this.#tick + ms;
    await turns();
    while (this.#tick < end) {
      this.advance(Math.min(5000, end - this.#tick));
      await turns();
    }
  }

  /** Advances at once, firing all due alarms. */
  advance(ms: number): void {
    const end = this.#tick + ms;
    const next = () => [...this.#alarms].filter(({ due }) => due <= end).toSorted((a, b) => a.due - b.due)[0];
    for (let alarm = next(); alarm; alarm = next()) {
      this.#alarms.delete(alarm);
      this.#tick = Math.max(this.#tick, alarm.due);
      alarm.callback();
    }
    this.#tick = end;
  }
}
