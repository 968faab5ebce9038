// Whether a test detects a fault: it fails twice with the fault, and passes without it.

/** Nearest first: the first few files detect most faults. */
const BATCHES = { unit: [4, 12, Infinity], others: [2, 4, 8, 16, Infinity] };

export class Judge {
  #clean;
  #faulty;
  /** The result of each test file without a fault. */
  #without = new Map();

  /** Two trees: faults are put into one, never into the other. */
  constructor(faulty, clean) {
    this.#faulty = faulty;
    this.#clean = clean;
  }

  /** Resolves with `{ file, name }` of a test that detects the fault, or undefined. */
  async findBy(fault, kind, tests) {
    this.#faulty.break(fault);
    try {
      for (const batch of batchesOf(tests, BATCHES[kind])) {
        const found = await this.#tryBatch(batch);
        if (found) return found;
      }
      return undefined;
    } finally {
      this.#faulty.mend(fault);
    }
  }

  /** A file that also fails without the fault is inconclusive: the rest of the batch is run without it. */
  async #tryBatch(batch) {
    for (let left = batch; left.length > 0;) {
      const run = await this.#faulty.test(left);
      if (run.ok) return undefined;
      const failed = run.failed[0] ?? { file: left[0], name: "(the run)" };
      const suspects = run.failed.length > 0 ? [failed.file] : left;
      if (await this.#isByFault(failed, suspects)) return { file: failed.file, name: failed.name };
      left = left.filter((file) => !suspects.includes(file));
    }
    return undefined;
  }

  /** One failure may be due to the machine. */
  async #isByFault({ name }, files) {
    if (!(await this.#passesWithout(files, name))) return false;
    const again = await this.#faulty.test(files);
    return !again.ok;
  }

  async #passesWithout(files, name) {
    const key = files.join(" ");
    let run = this.#without.get(key);
    if (!run) {
      run = await this.#clean.test(files);
      this.#without.set(key, run);
    }
    const passed = run.passed.filter((test) => files.includes(test.file));
    return run.ok ? true : passed.some((test) => test.name === name);
  }
}

function batchesOf(tests, sizes) {
  const batches = [];
  for (let from = 0, at = 0; from < tests.length; from += sizes[at++])
    batches.push(tests.slice(from, from + sizes[at]));
  return batches;
}
