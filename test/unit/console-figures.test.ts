import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { figuresOf } from "../../console/src/usage/figure.ts";
import { startOfRange, everyDay, type Day } from "../../console/src/usage/range.ts";
import type { Amounts, Usage } from "../../src/console/wire-usage.ts";

const amounts = (over: Partial<Amounts> = {}): Amounts => ({
  turns: 0,
  failed: 0,
  costUsd: 0,
  tokens: { input: 0, output: 0, cacheRead: 0, cacheCreation: 0 },
  durationMs: 0,
  workedMs: 0,
  waitedMs: 0,
  ...over,
});
const day = (name: string, over: Partial<Day> = {}): Day => ({
  ...amounts({ turns: 1 }),
  day: name,
  costByModel: {},
  ...over,
});
const usage = (over: Partial<Usage> = {}): Usage => ({
  since: 0,
  totals: amounts(),
  days: [],
  models: [],
  directories: [],
  ...over,
});

describe("the days of a chart", () => {
  const zone = process.env["TZ"];

  beforeEach(() => {
    process.env["TZ"] = "America/New_York";
  });
  afterEach(() => {
    if (zone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = zone;
  });

  it("the days of a chart are consecutive up to today, each once, including days of 23 and 25 hours", () => {
    for (const [now, last] of [
      [new Date(2026, 2, 10, 0, 5), "2026-03-10"],
      [new Date(2026, 10, 3, 23, 55), "2026-11-03"],
    ] as const) {
      const since = startOfRange(30, now);
      const names = everyDay(usage({ since, days: [day(last)] }), now).map((each) => each.day);
      expect(names).toHaveLength(30);
      expect(new Set(names).size).toBe(30);
      expect(names).toEqual(names.toSorted());
      expect(names.at(-1)).toBe(last);
    }
  });

  it("the days of a chart include the server's last day, even if the server's clock is ahead", () => {
    const now = new Date(2026, 2, 10, 23, 59);
    const days = everyDay(usage({ since: startOfRange(7, now), days: [day("2026-03-11")] }), now);
    expect(days.map(({ turns }) => turns)).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
  });
});

describe("the charts", () => {
  it("the cost chart has a colour for each of the 5 most expensive models, and one for all others", () => {
    const costs = { a: 9, b: 8, c: 7, d: 6, e: 5, f: 4, "g\u202e": 3 };
    const models = Object.entries(costs).map(([model, costUsd]) => ({ model, costUsd }));
    const days = [day("2026-03-01", { costUsd: 42, costByModel: costs }), day("2026-03-02")];
    const figures = figuresOf(usage({ days, models, totals: amounts({ costUsd: 42, turns: 2 }) }), days);
    const [cost] = figures;
    expect(cost?.series.map(({ name, values }) => [name, ...values])).toEqual([
      ["a", 9, 0],
      ["b", 8, 0],
      ["c", 7, 0],
      ["d", 6, 0],
      ["e", 5, 0],
      ["Others", 7, 0],
    ]);
    expect(cost?.summary).toBe("$42.00 in all. Most on Sun, Mar 1: $42.00.");
    expect(new Set(cost?.series.map(({ fill }) => fill)).size).toBe(6);
    expect(figures.at(-1)?.labels.at(-1)).toBe("g⟨U+202E⟩");
  });

  it("a chart without data is omitted", () => {
    const days = [day("2026-03-01", { failed: 1, workedMs: 15_000, waitedMs: 45_000 })];
    const figures = figuresOf(usage({ days }), days);
    expect(figures.map(({ title }) => title)).toEqual(["Turns per day", "Time per day"]);
    expect(figures[0]?.series.map(({ values }) => values)).toEqual([[0], [1]]);
    expect(figures[1]?.series.map(({ values }) => values)).toEqual([[15_000], [45_000]]);
  });

  it("a time axis has round steps", () => {
    const [, time] = figuresOf(usage(), [day("2026-03-01", { workedMs: 1 })]);
    const MINUTE = 60_000;
    const steps = [0.5, 4, 40, 100, 299, 1400, 100_000].map((most) => {
      const step = time?.stepOf?.(most * MINUTE) ?? 0;
      return time?.tick(step);
    });
    expect(steps).toEqual(["15 s", "1 min", "10 min", "30 min", "1 h", "6 h", "333.3 h"]);
  });
});
