import type { Clock } from "../../src/engine/ports.ts";
import { T0 } from "./step-walk.ts";

/** A clock that a test moves. */
export class ManualClock implements Clock {
  #now = T0;
  readonly #alarms = new Set<{ time: number; callback: () => void }>();

  now = (): number => this.#now;

  at = (time: number, callback: () => void): (() => void) => {
    const alarm = { time, callback };
    this.#alarms.add(alarm);
    return () => this.#alarms.delete(alarm);
  };

  /** Time that goes by while the nodes live: what is due now and then gets its turn of the event loop. */
  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    while (this.#now < end) {
      this.advance(Math.min(5000, end - this.#now));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Time that goes by at once. */
  advance(ms: number): void {
    const end = this.#now + ms;
    const next = () => [...this.#alarms].filter(({ time }) => time <= end).toSorted((a, b) => a.time - b.time)[0];
    for (let alarm = next(); alarm; alarm = next()) {
      this.#alarms.delete(alarm);
      this.#now = Math.max(this.#now, alarm.time);
      alarm.callback();
    }
    this.#now = end;
  }
}
