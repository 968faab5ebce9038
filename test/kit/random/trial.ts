import { readFileSync } from "node:fs";

import fc, { type Arbitrary } from "fast-check";
import { expect } from "vitest";

import type { World } from "../world.ts";
import { anyCall, type Call, type ListedTool } from "./calls.ts";
import { Cast } from "./cast.ts";
import { faultsOf } from "./judge.ts";
import { CallSender } from "./send.ts";

/**
 * Random calls generated from the schemas, valid and invalid. A failed call is printed with its seed and shrunk as far as
 * possible. RANDOM_SEED=n repeats the calls of a run, RANDOM_CALLS=n sets their number.
 */

export const SEED = Number(process.env["RANDOM_SEED"] ?? Math.trunc(Math.random() * 2 ** 31));
const LANES = 16;
/** Number of calls after which ended sessions are replaced. */
const ROUND = 2_000;
/** Time limit of the search for the smallest call with an equal fault, ms. */
const SHRINK_MS = 30_000;
const MAX_KINDS = 5;
/** Minimum share of answers about the caller's own sessions. */
const MIN_TOLD = 1 / 1_000;
/** At most `MAX_LONGER` times as many calls are made to reach `MIN_TOLD`. */
const MAX_LONGER = 10;

export const callsOr = (usual: number) => Number(process.env["RANDOM_CALLS"] ?? usual);

/**
 * Expects that calls crash nothing, hang nowhere, and reveal nothing of other users. Compares the memory after the first round
 * with the memory at the end.
 */
export async function expectNoFaults(world: World, count: number): Promise<void> {
  const round = Math.min(ROUND, Math.ceil(count / 2));
  const cast = await Cast.start(world);
  const trial = new Trial(cast);
  const call = anyCall(await cast.tools<ListedTool[]>());
  const found: FailedCall[] = [];
  let warm = 0;
  // About one answer in a hundred is about a caller's own sessions: a small sample can have none by chance, so more calls are
  // made.
  const isDone = (done: number) => done >= count && (trial.ownAnswers > count * MIN_TOLD || done >= MAX_LONGER * count);
  for (let done = 0; !isDone(done) && found.length === 0; done += round) {
    await cast.replaceEnded();
    const seed = SEED + done;
    const calls = fc.sample(call, { seed, numRuns: round });
    found.push(...(await trial.all(calls, seed)));
    warm ||= residentBytes(cast.server.pid);
  }
  expect(await describeFaults(found, call, trial)).toEqual([]);
  // Without answers about a caller's own sessions, the absence of others' would prove nothing.
  expect(trial.ownAnswers).toBeGreaterThan(count * MIN_TOLD);
  expect((await cast.server.fetch("/healthz")).status).toBe(200);
  expect(residentBytes(cast.server.pid)).toBeLessThan(2 * warm);

  trial.close();
  await world.closeServers();
  await world.quiet(15_000);
  expect(entriesOfFaults(cast.server.stderr())).toEqual([]);
  for (const secret of cast.secrets) expect(cast.server.stderr()).not.toContain(secret);
}

interface FailedCall {
  /** Seed of the round; `path` is the index of the call in the round. */
  readonly seed: number;
  readonly path: string;
  readonly faults: readonly string[];
}

/** Sends calls and judges the answers. */
class Trial {
  readonly #cast: Cast;
  readonly #line = new CallSender(LANES);
  #id = 1_000;
  /** Number of answers about the caller's own sessions. */
  ownAnswers = 0;

  constructor(cast: Cast) {
    this.#cast = cast;
  }

  async faults(call: Call): Promise<string[]> {
    this.#id += 1;
    try {
      const { answer, sent } = await this.#line.send(call, this.#cast.target(call.caller), this.#id);
      if (this.#cast.isOwn(call.caller, answer.text)) this.ownAnswers += 1;
      if (call.era === "legacy" && answer.status === 404) await this.#cast.reconnect(call.caller);
      return faultsOf(sent, answer, this.#cast.forbidden(call.caller));
    } catch (error) {
      return [`no answer: ${String(error)}`];
    }
  }

  async all(calls: readonly Call[], seed: number): Promise<FailedCall[]> {
    const found: FailedCall[] = [];
    const left = calls.entries();
    const lane = async (): Promise<void> => {
      for (const [index, call] of left) {
        const faults = await this.faults(call);
        if (faults.length > 0) found.push({ seed, path: String(index), faults });
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    return found;
  }

  close(): void {
    this.#line.close();
  }
}

/** Describes the smallest call for each kind of fault. */
async function describeFaults(found: readonly FailedCall[], call: Arbitrary<Call>, trial: Trial): Promise<string[]> {
  const kinds = new Set(found.map(({ faults }) => faults[0] ?? ""));
  const reports: string[] = [];
  for (const fault of [...kinds].slice(0, MAX_KINDS)) {
    const having = found.filter(({ faults }) => faults[0] === fault);
    const smallest = (await smallestWith(fault, having, { call, trial })) ?? "none of them fails when it is sent again";
    reports.push(`${fault} (${String(having.length)} calls, seed ${String(SEED)}): ${smallest}`);
  }
  return reports;
}

/** Finds a call that fails alone: while a call blocks the server, concurrent calls fail too, but succeed when sent alone. */
async function smallestWith(
  fault: string,
  having: readonly FailedCall[],
  { call, trial }: { call: Arbitrary<Call>; trial: Trial },
): Promise<string | undefined> {
  const fails = fc.asyncProperty(call, async (each) => !(await trial.faults(each)).includes(fault));
  for (const { path, seed } of having.slice(0, LANES)) {
    const again = { seed, path, numRuns: 1, interruptAfterTimeLimit: SHRINK_MS };
    const { counterexample } = await fc.check(fails, again);
    if (counterexample) return fc.stringify(counterexample[0]);
  }
  return undefined;
}

/** Resident memory of the process, bytes. */
function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1_024;
}

/** Returns the lines of `log` that report a fault of the server itself. */
function entriesOfFaults(log: string): string[] {
  const fault =
    /uncaught|unhandled|a tool failed|a resource failed|a request failed|the engine did not start|"level":(?:50|60)/i;
  return log.split("\n").filter((line) => fault.test(line));
}
