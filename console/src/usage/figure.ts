import type { Usage } from "../../../src/console/wire-usage.ts";
import { count, duration, usd } from "../parts/format.ts";
import { displayLine } from "../parts/text.ts";
import { type Day, dayWords } from "./range.ts";

/** Data of a chart, shared by the drawing, its description and its table. */

export interface Series {
  readonly name: string;
  /** Number of a color in usage.css, or "bad" for failures. */
  readonly fill: Fill;
  readonly values: readonly number[];
}

export type Fill = 1 | 2 | 3 | 4 | 5 | 6 | "bad";

export interface Figure {
  readonly title: string;
  /** Description in a sentence, for screen readers. */
  readonly summary: string;
  /** Kind of the labels, such as "Day". */
  readonly of: string;
  readonly labels: readonly string[];
  /** Stacked. */
  readonly series: readonly Series[];
  readonly lying?: boolean;
  /** Formats a value beside the axis (`tick`) and elsewhere (`words`). */
  readonly tick: (value: number) => string;
  readonly words: (value: number) => string;
  /** Step of the axis for a maximum value; 0 or missing: steps of 1, 2 and 5 of Chart.js. */
  readonly stepOf?: (most: number) => number;
}

export function figuresOf(usage: Usage, days: readonly Day[]): Figure[] {
  return [costs(usage, days), turns(days), tokens(days), time(days), models(usage)].filter((figure) =>
    figure.series.some(({ values }) => values.some((value) => value > 0)),
  );
}

/** Number of models with their own color; the rest is "Others". */
const MAX_COLORED = 5;
const FILLS = [1, 2, 3, 4, 5] as const;

function costs({ models: all, totals }: Usage, days: readonly Day[]): Figure {
  const own = all.slice(0, MAX_COLORED).map(({ model }) => model);
  const series: Series[] = own.map((model, n) => ({
    name: displayLine(model),
    fill: FILLS[n] ?? 6,
    values: days.map(({ costByModel }) => costByModel[model] ?? 0),
  }));
  if (all.length > own.length) {
    const rest = ({ costByModel }: Day) =>
      Object.entries(costByModel).reduce((sum, [model, costUsd]) => sum + (own.includes(model) ? 0 : costUsd), 0);
    series.push({ name: "Others", fill: 6, values: days.map(rest) });
  }
  return {
    ...byDay(days),
    title: "Cost per day",
    summary: `${usd(totals.costUsd)} in all. ${highestText(days, ({ costUsd }) => costUsd, usd)}`,
    series,
    tick: usdTick,
    words: usd,
  };
}

function turns(days: readonly Day[]): Figure {
  const words = (n: number) => n.toLocaleString("en-US");
  const all = days.reduce((sum, day) => sum + day.turns, 0);
  const failed = days.reduce((sum, day) => sum + day.failed, 0);
  return {
    ...byDay(days),
    title: "Turns per day",
    summary: `${count(all, "turn")} in all, ${words(failed)} failed. ${highestText(days, (day) => day.turns, words)}`,
    series: [
      { name: "Not failed", fill: 1, values: days.map((day) => day.turns - day.failed) },
      { name: "Failed", fill: "bad", values: days.map((day) => day.failed) },
    ],
    tick: words,
    words,
    stepOf: (most) => (most <= 5 ? 1 : 0),
  };
}

function tokens(days: readonly Day[]): Figure {
  const of = ({ tokens: each }: Day) => each.input + each.output + each.cacheRead + each.cacheCreation;
  return {
    ...byDay(days),
    title: "Tokens per day",
    summary: `${compactNumber(days.reduce((sum, day) => sum + of(day), 0))} in all. ${highestText(days, of, compactNumber)}`,
    series: [
      { name: "From the cache", fill: 1, values: days.map((day) => day.tokens.cacheRead) },
      { name: "To the cache", fill: 2, values: days.map((day) => day.tokens.cacheCreation) },
      { name: "In", fill: 3, values: days.map((day) => day.tokens.input) },
      { name: "Out", fill: 4, values: days.map((day) => day.tokens.output) },
    ],
    tick: compactNumber,
    words: (n) => n.toLocaleString("en-US"),
  };
}

function time(days: readonly Day[]): Figure {
  const worked = days.reduce((sum, day) => sum + day.workedMs, 0);
  const waited = days.reduce((sum, day) => sum + day.waitedMs, 0);
  return {
    ...byDay(days),
    title: "Time per day",
    summary: `${duration(worked)} of work in all, and ${duration(waited)} of waiting for approval.`,
    series: [
      { name: "Working", fill: 1, values: days.map((day) => day.workedMs) },
      { name: "Waiting for approval", fill: 2, values: days.map((day) => day.waitedMs) },
    ],
    tick: timeTick,
    words: (ms) => (ms === 0 ? "0" : duration(ms)),
    stepOf: timeStep,
  };
}

function models({ models: all }: Usage): Figure {
  const [dearest] = all;
  return {
    of: "Model",
    title: "Cost per model",
    summary: dearest ? `Most of it is ${displayLine(dearest.model)}: ${usd(dearest.costUsd)}.` : "",
    labels: all.map(({ model }) => displayLine(model)),
    series: [{ name: "Cost", fill: 1, values: all.map(({ costUsd }) => costUsd) }],
    lying: true,
    tick: usdTick,
    words: usd,
  };
}

function byDay(days: readonly Day[]): Pick<Figure, "of" | "labels"> {
  return { of: "Day", labels: days.map(({ day }) => dayWords(day)) };
}

function highestText(days: readonly Day[], of: (day: Day) => number, words: (value: number) => string): string {
  const [first, ...others] = days;
  if (!first) return "";
  const most = others.reduce((best, day) => (of(day) > of(best) ? day : best), first);
  return `Most on ${dayWords(most.day, true)}: ${words(of(most))}.`;
}

/** Compact number: 1.2M. */
export function compactNumber(n: number): string {
  return n.toLocaleString("en-US", { notation: "compact", maximumFractionDigits: 1 });
}

/** Keeps digits below a cent: with `usd`, three ticks of an axis could read "<$0.01". */
function usdTick(amount: number): string {
  return `$${amount.toLocaleString("en-US", { maximumFractionDigits: amount < 0.1 ? 4 : 2 })}`;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const STEPS = [
  ...[0.25, 1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12, 24, 48, 120, 240].map((hours) => hours * HOUR),
];

/** Smallest of `STEPS` with at most five steps up to `most`. */
function timeStep(most: number): number {
  return STEPS.find((step) => most / step <= 5) ?? most / 5;
}

function timeTick(ms: number): string {
  if (ms === 0) return "0";
  if (ms < MINUTE) return `${String(ms / 1000)} s`;
  const [unit, name] = ms < HOUR ? [MINUTE, "min"] : [HOUR, "h"];
  return `${(ms / unit).toLocaleString("en-US", { maximumFractionDigits: 1 })} ${name}`;
}
