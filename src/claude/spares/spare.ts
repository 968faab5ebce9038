import type { Options, Query, SpareProcess } from "@anthropic-ai/claude-agent-sdk";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { firstProcessTag } from "../../domain/names.ts";
import type { SessionBindings, LaunchPlan } from "../process/launch.ts";
import { hooksOf } from "../process/hooks.ts";
import type { Spawner } from "../supervise/spawn.ts";
import type { Spawned } from "../supervise/spawned.ts";
import type { Claim, SpareSpec } from "./spec.ts";

type Prewarm = (params: { options: Options; initializeTimeoutMs: number }) => Promise<SpareProcess>;

/** A start takes a third of a second, ms. */
const START_MS = 30_000;
/** A claim takes a tenth, and what is left of the start. What takes longer than this does not come: the session starts a process of its own, ms. */
const CLAIM_MS = 5_000;

/** A Claude Code that has started and waits for a session. Its session's id is fixed with it. */
export class Spare {
  readonly sessionId = randomUUID();
  readonly key: string;
  readonly processTag: string;
  readonly #up: Promise<SpareProcess>;
  #spawned: Spawned | undefined;
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
        canUseTool: async (...request) => this.#bound?.ask(...request) ?? NOBODY,
        hooks: hooksOf(
          {
            guard: async (...about) => this.#bound?.guard(...about) ?? {},
            confirm: async (...about) => (this.#bound ? this.#bound.confirm(...about) : NOBODY.message),
          },
          options.hooks,
        ),
        spawnClaudeCodeProcess: (request) =>
          spawner.spawn(request, (spawned) => this.#follow(spawned), { name: this.processTag, wrapper, record }),
      },
    });
    // `up()` rejects as well; without this Node would report an unhandled rejection.
    this.#up.catch(() => undefined);
  }

  #follow(spawned: Spawned): void {
    this.#spawned = spawned;
    if (this.#ended) this.end();
  }

  /** Resolves when it waits for a session; rejects when it has not come up. */
  async up(): Promise<void> {
    await this.#up;
  }

  /** Resolves when its process is gone. Its shim forgets one that no session had: a session may start another under its tag. */
  async gone(): Promise<void> {
    await this.#up.catch(() => undefined);
    await this.#spawned?.gone;
    const held = this.#isClaimed ? undefined : this.#spawned?.held;
    held?.acknowledge(held.lastLine());
  }

  /** Nothing is lost with it. */
  end(): void {
    this.#ended = true;
    this.#spawned?.kill();
  }

  /** Takes it for the session, or starts one in the ordinary way where it refuses: no prompt goes to it before it is taken. */
  async claimOr(fresh: LaunchPlan["start"], claim: Claim, bound: SessionBindings): Promise<Query> {
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
    const query = spare.claim({ prompt: once(decided, prompts), options: claim });
    const isTaken = await Promise.race([spare.claimed.then(() => true), late.then(() => false)]).catch(() => false);
    this.#isClaimed = isTaken;
    if (isTaken) this.#spawned?.held?.own(epoch);
    decide(isTaken);
    if (!isTaken || !this.#spawned) throw new Error("The spare process is gone.");
    onSpawned(this.#spawned);
    return query;
  }
}

/** The items, if they are to come here at all. */
async function* once<T>(decided: Promise<boolean>, items: AsyncIterable<T>): AsyncGenerator<T> {
  if (await decided) yield* items;
}

const NOBODY = { behavior: "deny", message: "No session has this process yet." } as const;
