/** Collects samples by name and computes the figures of the report. */
export class Figures {
  #samples = new Map();

  note(name, value) {
    if (value === undefined) return;
    this.#samples.set(name, [...this.of(name), value]);
  }

  /** Runs `work` and records its duration, ms. */
  async timed(name, work) {
    const began = performance.now();
    const value = await work();
    this.note(name, performance.now() - began);
    return value;
  }

  of(name) {
    return this.#samples.get(name) ?? [];
  }
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Returns the percentile (nearest rank): the least sample that `part` % of the samples do not exceed. `undefined` without
 * samples.
 */
export function percentile(values, part) {
  return values.toSorted((a, b) => a - b)[Math.max(Math.ceil((values.length * part) / 100) - 1, 0)];
}

/**
 * Returns the interquartile range of the ratios within a round, which shows the reliability of the ratio of the medians on this
 * machine.
 */
function spreadOf(values, bases) {
  const count = Math.min(values.length, bases.length);
  if (count < 4) return undefined;
  const ratios = Array.from({ length: count }, (_, round) => values[round] / bases[round]).toSorted((a, b) => a - b);
  return [ratios[Math.floor(count / 4)], ratios[Math.ceil((count * 3) / 4) - 1]];
}

/**
 * Returns a row of the report. `spec` names the samples `of` and, for a comparison, `base`; `atMost` bounds their ratio,
 * `atMostMore` their difference, `atMostAlone` the figure itself.
 */
export function rowOf(benchmark, spec, figures) {
  const [values, bases] = [figures.of(spec.of), spec.base === undefined ? [] : figures.of(spec.base)];
  if (values.length === 0) return undefined;
  const row = { benchmark, row: spec.row, unit: spec.unit, value: median(values), samples: values };
  if (spec.base !== undefined) {
    if (bases.length === 0) return undefined;
    const spread = spreadOf(values, bases);
    Object.assign(row, { base: spec.base, baseValue: median(bases), baseSamples: bases });
    Object.assign(row, { ratio: row.value / row.baseValue, ...(spread && { spread }) });
  }
  return { ...row, ...judged(row, spec) };
}

function judged({ baseValue, ratio, unit, value }, { atMost, atMostAlone, atMostMore }) {
  if (atMost !== undefined) return { bound: `<= ${String(atMost)}x`, met: ratio <= atMost };
  if (atMostAlone !== undefined) return { bound: `<= ${String(atMostAlone)} ${unit}`, met: value <= atMostAlone };
  if (atMostMore === undefined) return {};
  return { bound: `<= base + ${String(atMostMore)} ${unit}`, met: value - baseValue <= atMostMore };
}
