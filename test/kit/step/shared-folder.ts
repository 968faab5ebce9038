import { vi } from "vitest";
import type { Place } from "../../../src/domain/place.ts";
import { MemoryTranscripts, sharedBy } from "../store/machines.ts";
import { LEASE_MS, twoNodes, type TestNode, type World } from "./two-nodes.ts";

/** Place of a session whose folder both nodes have. */
export const VOLUME: Place = { volume: "0f6e" };

/** Two nodes on one store, `one` and `two`, each with a configuration folder of its own. All sessions are at one place. */
export class SharedFolder {
  readonly transcripts = new MemoryTranscripts();
  readonly world: World;
  readonly #place: Place;
  #uuids = 0;

  constructor(place = VOLUME) {
    this.#place = place;
    this.world = twoNodes({ a: this.#at("one"), b: this.#at("two") });
    setUp(this.world.a, "one");
    setUp(this.world.b, "two");
  }

  #at(name: string) {
    return sharedBy({ name, place: this.#place, transcripts: this.transcripts });
  }

  /** Connects a node named `name`, such as one that was started again. */
  connect(nodeId: string, name: string): TestNode {
    const node = this.world.connect(nodeId, this.#at(name));
    setUp(node, name);
    return node;
  }

  /** Ends the node without a word, and lets its lease run out. */
  lose(node: TestNode): void {
    node.die();
    this.world.clock.advance(LEASE_MS);
  }

  /** Ends the running turn with an answer. Returns a function that writes a late answer to the transcript. */
  answer(node: TestNode, id: string, text: string, { isLate = false } = {}): () => void {
    this.#uuids += 1;
    const uuid = `uuid-${String(this.#uuids)}`;
    const write = () => node.runtime.conversations.append(`${id}.jsonl`, JSON.stringify({ uuid, text }));
    if (!isLate) write();
    const message = { type: "assistant", uuid, message: { model: "m" } };
    node.runtime.lastProcess(id).say({ type: "message", message });
    node.runtime.lastProcess(id).finish();
    return write;
  }

  /** Resolves once the manifest names the end of turn `nth`. */
  async sealed(node: TestNode, id: string, nth = 1): Promise<void> {
    const { id: eventId } = await node.waitForEvent(id, "turn.ended", nth);
    await vi.waitUntil(() => this.transcripts.manifests.get(id)?.eventId === eventId, { timeout: 15_000, interval: 5 });
  }

  /** Starts a session with a turn that runs. */
  async begin(node: TestNode, text = "one", options: Parameters<TestNode["open"]>[2] = {}): Promise<string> {
    const id = await node.open(text, undefined, options);
    await node.runtime.lastProcess(id).waitForCall(`push ${text}`);
    await node.runtime.lastProcess(id).begun;
    return id;
  }

  /** Starts a session with a stored turn. */
  async open(node: TestNode, text = "one"): Promise<string> {
    const id = await this.begin(node, text);
    this.answer(node, id, text);
    await this.sealed(node, id);
    return id;
  }

  /** Begins turn `nth`, and resolves once it is stored. */
  async turn(node: TestNode, id: string, text: string, nth: number): Promise<void> {
    await reply(node, id, text);
    this.answer(node, id, text);
    await this.sealed(node, id, nth);
  }

  /** Lets every write to the store fail, or only seals, until the returned function is called. */
  break(only?: "seal"): () => void {
    this.transcripts.before = (what) => {
      if (what === (only ?? what)) throw new Error("the database is gone");
    };
    return () => void (this.transcripts.before = () => undefined);
  }
}

function setUp({ runtime }: TestNode, name: string): void {
  runtime.identity = { ...runtime.identity, configFolder: `/config-of-${name}`, node: name };
  runtime.waits = true;
}

/** Sends a prompt; resolves once a process has it. */
export async function reply(node: TestNode, id: string, text: string): Promise<void> {
  await node.engine.prompt("local", id, { text });
  await node.runtime.lastProcess(id).waitForCall(`push ${text}`);
  await node.runtime.lastProcess(id).begun;
}

/** Returns the answers in the transcript of a node, in order. */
export const textsAt = (node: TestNode, id: string): string[] =>
  [...(node.runtime.conversations.files.get(`${id}.jsonl`) ?? "").matchAll(/"text":"(\w+)"/g)].flatMap(
    ([, text]) => text ?? [],
  );
