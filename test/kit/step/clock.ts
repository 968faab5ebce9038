import type { Clock } from "../../../src/engine/ports.ts";
import { T0 } from "./walk.ts";

/** A command to another node takes a few. */
const TURNS = 10;

async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

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

  /** Time that goes by while the nodes live: what is due before, now and then gets its turns of the event loop. */
  async pass(ms: number): Promise<void> {
    const end = this.#tick + ms;
    await turns();
    while (this.#tick < end) {
      this.advance(Math.min(5000, end - this.#tick));
      await turns();
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
