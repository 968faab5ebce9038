import type { Options, Query, SpareProcess } from "@anthropic-ai/claude-agent-sdk";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { firstProcessTag } from "../../domain/names.ts";
import type { SessionBindings, LaunchPlan } from "../process/launch.ts";
import { hooksOf } from "../process/hooks.ts";
import type { Spawner } from "../supervise/spawn.ts";
import type { ProcessHandle } from "../supervise/process-handle.ts";
import type { Claim, SpareSpec } from "./spec.ts";

type Prewarm = (params: { options: Options; initializeTimeoutMs: number }) => Promise<SpareProcess>;

/** Time limit for a start, ms. Normally 300 ms. */
const START_MS = 30_000;
/**
 * Time limit for a claim and the rest of the start, ms; afterwards the session starts its own process. A claim normally takes
 * 100 ms.
 */
const CLAIM_MS = 5_000;

/** Claude Code process that waits for a session. `sessionId` is fixed from the start. */
export class Spare {
  readonly sessionId = randomUUID();
  readonly key: string;
  readonly processTag: string;
  readonly #up: Promise<SpareProcess>;
  #spawned: ProcessHandle | undefined;
  #bound: Pick<SessionBindings, "ask" | "confirm" | "guard"> | undefined;
  #ended = false;
  #isClaimed = false;

  constructor(
    { key, options, record, wrapper }: SpareSpec,
    { prewarm, spawner }: { prewarm: Prewarm; spawner: Spawner },
  ) {
    this.key = key;
    this.processTag = firstProcessTag(this.sessionId);
    this.#up = prewarm({
      initializeTimeoutMs: START_MS,
      options: {
        ...options,
        sessionId: this.sessionId,
        canUseTool: async (...request) => this.#bound?.ask(...request) ?? UNCLAIMED,
        hooks: hooksOf(
          {
            guard: async (...about) => this.#bound?.guard(...about) ?? {},
            confirm: async (...about) => (this.#bound ? this.#bound.confirm(...about) : UNCLAIMED.message),
          },
          options.hooks,
        ),
        spawnClaudeCodeProcess: (request) =>
          spawner.spawn(request, (spawned) => this.#follow(spawned), { name: this.processTag, wrapper, record }),
      },
    });
    // `up()` rejects too; without a handler Node would report an unhandled rejection.
    this.#up.catch(() => undefined);
  }

  #follow(spawned: ProcessHandle): void {
    this.#spawned = spawned;
    if (this.#ended) this.end();
  }

  /** Resolves once the spare waits for a session; rejects if the start failed. */
  async up(): Promise<void> {
    await this.#up;
  }

  /**
   * Resolves after the process is gone. The shim forgets an unclaimed spare, because a session may start a new process under
   * its tag.
   */
  async gone(): Promise<void> {
    await this.#up.catch(() => undefined);
    await this.#spawned?.gone;
    const held = this.#isClaimed ? undefined : this.#spawned?.inShim;
    held?.acknowledge(held.lastLine());
  }

  /** Ends the process; nothing is lost, because a spare has no prompt. */
  end(): void {
    this.#ended = true;
    this.#spawned?.kill();
  }

  /** Claims the spare for the session, or starts `fresh` if the spare refuses. No prompt is sent before the claim succeeds. */
  async claimOrStart(fresh: LaunchPlan["start"], claim: Claim, bound: SessionBindings): Promise<Query> {
    try {
      return await this.#claim(claim, bound);
    } catch {
      this.end();
      await this.gone();
      if (bound.signal.aborted) throw new Error("The process was stopped before it started.");
      return fresh(bound);
    }
  }

  async #claim(claim: Claim, bound: SessionBindings): Promise<Query> {
    const { epoch, onSpawned, prompts, signal } = bound;
    const late = sleep(CLAIM_MS, undefined, { ref: false, signal });
    const spare = await Promise.race([this.#up, late]);
    if (!spare || this.#ended) throw new Error("The spare process did not start.");
    this.#bound = bound;
    let decide: (isTaken: boolean) => void = () => undefined;
    const decided = new Promise<boolean>((resolve) => (decide = resolve));
    const query = spare.claim({ prompt: itemsIfClaimed(decided, prompts), options: claim });
    const isTaken = await Promise.race([spare.claimed.then(() => true), late.then(() => false)]).catch(() => false);
    this.#isClaimed = isTaken;
    if (isTaken) this.#spawned?.inShim?.own(epoch);
    decide(isTaken);
    if (!isTaken || !this.#spawned) throw new Error("The spare process is gone.");
    onSpawned(this.#spawned);
    return query;
  }
}

/** Yields the items only if `decided` resolves to true. */
async function* itemsIfClaimed<T>(decided: Promise<boolean>, items: AsyncIterable<T>): AsyncGenerator<T> {
  if (await decided) yield* items;
}

const UNCLAIMED = { behavior: "deny", message: "No session has this process yet." } as const;
