import type { Clock } from "../../../src/engine/ports.ts";
import { T0 } from "./walk.ts";

/** A clock that a test moves. */
export class ManualClock implements Clock {
  #tick = 0;
  #setBy = 0;
  readonly #alarms = new Set<{ due: number; callback: () => void }>();

  now = (): number => T0 + this.#tick + this.#setBy;
  tick = (): number => this.#tick;

  after = (ms: number, callback: () => void): (() => void) => {
    const alarm = { due: this.#tick + ms, callback };
    this.#alarms.add(alarm);
    return () => this.#alarms.delete(alarm);
  };

  /** The system clock is set, or the machine sleeps: no time awake goes by. */
  set(byMs: number): void {
    this.#setBy += byMs;
  }

  /** Time that goes by while the nodes live: what is due now and then gets its turn of the event loop. */
  async pass(ms: number): Promise<void> {
    const end = this.#tick + ms;
    while (this.#tick < end) {
      this.advance(Math.min(5000, end - this.#tick));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Time that goes by at once. */
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
