import { isDeepStrictEqual } from "node:util";
import { AppError } from "../../../src/domain/error.ts";
import type { StoredEvent } from "../../../src/domain/event.ts";
import { LOCAL_CALLER } from "../../../src/domain/principal.ts";
import type { Clock, SessionBackend } from "../../../src/engine/ports.ts";
import { TestNode } from "./two-nodes.ts";

/**
 * Random calls of two engines on one store, with deaths of nodes. Each call is answered or refused; all nodes read one log, which
 * has every answered call once.
 */

/** A store of the contract suite, for engines. */
export interface EngineStore {
  readonly clock: Clock;
  connect(nodeId: string): Promise<SessionBackend>;
  /** Lets the lease of a dead node expire, while the others live. */
  expire(dead: SessionBackend): Promise<void>;
}

/** Calls that run at once. */
const AT_ONCE = 4;

type Random = (below: number) => number;

/** Returns a generator of numbers that follow from `seed`: https://en.wikipedia.org/wiki/Linear_congruential_generator */
function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export class RandomEngines {
  readonly #store: EngineStore;
  readonly #random: Random;
  readonly #ids: string[] = [];
  readonly #nodes: TestNode[] = [];
  readonly #all: TestNode[] = [];
  /** Answered prompts by session. */
  readonly #prompts = new Map<string, Asked[]>();
  /** Logs as followed from the first event, by session, through the node that opened it. */
  readonly #followed = new Map<string, StoredEvent[]>();
  readonly faults: string[] = [];
  /** Numbers of calls, by outcome, and of deaths. */
  readonly counts = { answered: 0, refused: 0, deaths: 0 };
  #made = 0;

  constructor(store: EngineStore, seed: number) {
    this.#store = store;
    this.#random = randomFrom(seed);
  }

  async run(rounds: number): Promise<void> {
    await this.#connect();
    await this.#connect();
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(Array.from({ length: AT_ONCE }, async () => this.#call()));
      if (this.#random(6) === 0) await this.#replace();
    }
    for (const id of this.#ids) await this.#compare(id);
    for (const { backend } of this.#all) await backend.close();
  }

  async #connect(): Promise<void> {
    const node = new TestNode(await this.#store.connect(`n${String(this.#all.length)}`), this.#store.clock);
    this.#nodes.push(node);
    this.#all.push(node);
  }

  /** Kills a node without warning, and connects another. */
  async #replace(): Promise<void> {
    const [dead] = this.#nodes.splice(this.#random(this.#nodes.length), 1);
    if (!dead) return;
    dead.die();
    this.counts.deaths += 1;
    await this.#connect();
    await this.#store.expire(dead.backend);
  }

  #pick<T>(all: readonly T[]): T {
    return all[this.#random(all.length)]!;
  }

  async #call(): Promise<void> {
    const node = this.#pick(this.#nodes);
    const isNew = this.#ids.length < 3 || this.#random(12) === 0;
    const work = isNew ? this.#open(node) : this.#pick(this.#works())(node, this.#pick(this.#ids));
    await work.then(
      () => (this.counts.answered += 1),
      (error: unknown) => {
        this.counts.refused += 1;
        if (!(error instanceof AppError)) this.faults.push(String(error));
      },
    );
  }

  #works(): readonly ((node: TestNode, id: string) => Promise<void>)[] {
    return [this.#prompt, this.#prompt, this.#finish, this.#finish, this.#ask, this.#answer, this.#interrupt];
  }

  async #open(node: TestNode): Promise<void> {
    const text = `prompt ${String((this.#made += 1))}`;
    const id = await node.open(text);
    this.#ids.push(id);
    this.#prompts.set(id, [...(this.#prompts.get(id) ?? []), { cursor: 1, text }]);
    const seen: StoredEvent[] = [];
    this.#followed.set(id, seen);
    void this.#follow(node, id, seen).catch(() => undefined);
  }

  /** Follows until the node closes its store. */
  async #follow(node: TestNode, id: string, seen: StoredEvent[]): Promise<void> {
    for await (const event of node.backend.log.tail(id, 1, new AbortController().signal)) seen.push(event);
  }

  readonly #prompt = async (node: TestNode, id: string): Promise<void> => {
    const text = `prompt ${String((this.#made += 1))}`;
    const { cursor } = await node.engine.prompt("local", id, { text });
    this.#prompts.get(id)?.push({ cursor, text });
  };

  /** Ends the turn in the owner's process, if it lives. */
  readonly #finish = async (_: TestNode, id: string): Promise<void> => {
    const process = this.#processOf(id);
    if (process?.promptId !== "") process?.finish();
    await Promise.resolve();
  };

  readonly #ask = async (_: TestNode, id: string): Promise<void> => {
    this.#processOf(id)?.ask(`r${String((this.#made += 1))}`);
    await Promise.resolve();
  };

  readonly #answer = async (node: TestNode, id: string): Promise<void> => {
    const { state } = await node.engine.get("local", id);
    const [request] = state.requests;
    if (!request) return;
    const answer = { requestId: request.requestId, decision: "allow", by: "caller" } as const;
    await node.engine.answer(LOCAL_CALLER, id, answer);
  };

  readonly #interrupt = async (node: TestNode, id: string): Promise<void> => {
    await node.engine.interrupt("local", id, "ann");
  };

  #processOf(id: string) {
    const processes = this.#nodes.flatMap(({ runtime }) => runtime.processes);
    return processes.findLast((process) => process.sessionId === id && !process.gone);
  }

  /** Compares the logs of all living nodes with each other, with the row and with what was answered. */
  async #compare(id: string): Promise<void> {
    const reading = this.#nodes.map(async ({ backend }) => backend.log.read(id, 1, 10_000));
    const [log = [], ...others] = await Promise.all(reading);
    const record = await this.#nodes[0]?.backend.rows.get(id);
    const laws = {
      "all nodes read one log": others.every((other) => isBeginning(other, log) || isBeginning(log, other)),
      "the log has no gap": log.every((event, n) => event.id === n + 1),
      "each answered prompt is stored once": (this.#prompts.get(id) ?? []).every((each) => isStoredOnce(each, log)),
      "a follower saw the log": isBeginning(this.#followed.get(id) ?? [], log),
      "the row is as new as the log": (record?.state.lastEventId ?? 0) >= log.length,
    };
    for (const [law, holds] of Object.entries(laws)) if (!holds) this.faults.push(`${id}: not true: ${law}`);
  }
}

function isBeginning(one: readonly StoredEvent[], other: readonly StoredEvent[]): boolean {
  return isDeepStrictEqual(one, other.slice(0, one.length));
}

function isStoredOnce({ cursor, text }: Asked, log: readonly StoredEvent[]): boolean {
  const found = log.filter((event) => event.type === "prompt.queued" && event.data.text === text);
  return found.length === 1 && (found[0]?.id ?? 0) >= cursor;
}

/** A prompt, and the cursor in its answer. */
interface Asked {
  readonly cursor: number;
  readonly text: string;
}
