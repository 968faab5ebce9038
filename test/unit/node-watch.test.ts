import { beforeEach, describe, expect, it } from "vitest";

import { NodeWatch, requireSameUsers } from "../../src/app/node-watch.ts";
import { signingKey } from "../../src/app/signing-key.ts";
import type { NodeFacts } from "../../src/engine/ports.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { NodesInMemory } from "../kit/store/nodes-in-memory.ts";

let store: NodesInMemory;
let clock: ManualClock;
let lines: string[];
beforeEach(() => {
  store = new NodesInMemory();
  clock = new ManualClock();
  lines = [];
});

const note = (text: string) => void lines.push(text);
const log = { error: note, info: note, warn: note };

function partsOf(nodeId: string, facts: Partial<NodeFacts> = {}) {
  return { backend: { nodeId, machines: store.seenBy({ name: nodeId, ...facts }) }, clock, log };
}

describe("the start of a node", () => {
  it("a node starts beside nodes with the same users, dead nodes and drained nodes", async () => {
    store.renew("same", { principals: "a" });
    store.renew("drained", { principals: "b", isDraining: true });
    store.renew("dead", { principals: "b" });
    store.end("dead");
    await requireSameUsers(partsOf("new", { principals: "a" }));
    expect(lines).toEqual([]);
  });

  it("a node does not start beside a node that lives and has other users", async () => {
    store.renew("old", { principals: "b" });
    const starting = requireSameUsers(partsOf("new", { principals: "a" }));
    const refused = starting.catch(String);
    await clock.pass(5_000);
    store.renew("old");
    await clock.pass(5_000);
    expect(await refused).toMatch(/principals: the node old of this store .* nodes drain old`\.$/);
    expect(lines).toEqual(["a node has other users: waiting for it to end"]);
  });

  it("a node starts once the lease of a node that has ended is over", async () => {
    store.renew("old", { principals: "b" });
    let isStarted = false;
    const starting = requireSameUsers(partsOf("new")).then(() => (isStarted = true));
    await clock.pass(20_000);
    expect(isStarted).toBe(false);
    store.end("old");
    await clock.pass(5_000);
    await starting;
  });

  it("a server that is stopped while its node waits for another one to end stops waiting", async () => {
    store.renew("old", { principals: "b" });
    const over = new AbortController();
    const starting = requireSameUsers(partsOf("new"), over.signal);
    over.abort();
    await clock.pass(5_000);
    await expect(starting).resolves.toBeUndefined();
  });
});

describe("a node that runs", () => {
  let ended: string[];
  const watch = (nodeId: string, facts?: Partial<NodeFacts>) => {
    ended = [];
    const end = (error: Error) => void ended.push(error.message);
    return new NodeWatch({ ...partsOf(nodeId, facts), end });
  };

  it("a node learns that it is drained, and that it is not drained any more", async () => {
    const watched = watch("n1");
    store.renew("n1");
    const machines = store.seenBy();
    expect(watched.isDraining).toBe(false);
    await machines.setDraining("n1", true);
    await clock.pass(10_000);
    expect(watched.isDraining).toBe(true);
    await machines.setDraining("n1", false);
    await clock.pass(10_000);
    expect(watched.isDraining).toBe(false);
    expect(lines).toEqual(["this node is drained: it begins no more turns", "this node begins turns again"]);
    await watched.stop();
  });

  it("a node that was cut off for longer than its lease ends if the users have changed meanwhile", async () => {
    const watched = watch("n1");
    await clock.pass(10_000);
    store.renew("n9", { principals: "changed" });
    clock.freeze(50_000);
    await clock.pass(10_000);
    expect(ended).toMatchObject([expect.stringContaining("the node n9 of this store has other users")]);
    await watched.stop();
  });

  it.each([
    ["n1", "n2", 0],
    ["n2", "n1", 1],
  ])("if nodes with other users start at once, of %s and %s one ends: %d", async (own, other, ends) => {
    const watched = watch(own);
    store.renew(other, { principals: "other" });
    await clock.pass(10_000);
    expect(ended).toEqual([]);
    await clock.pass(10_000);
    expect(ended).toHaveLength(ends);
    expect(lines).toContain("a node of the store has other users");
    await watched.stop();
  });

  it("a drained node goes on beside nodes with other users, so that users can be changed", async () => {
    const watched = watch("n2");
    store.renew("n2", { isDraining: true });
    store.renew("n1", { principals: "changed" });
    await clock.pass(30_000);
    expect(ended).toEqual([]);
    await watched.stop();
  });

  it("a node goes on while the nodes cannot be read", async () => {
    const { backend, ...parts } = partsOf("n1");
    const machines = { ...backend.machines, nodes: async () => Promise.reject(new Error("gone")) };
    const watched = new NodeWatch({
      ...parts,
      backend: { ...backend, machines },
      end: (error) => expect.fail(error.message),
    });
    await clock.pass(10_000);
    expect(watched.isDraining).toBe(false);
    expect(lines).toContain("the nodes of the store cannot be read");
    await watched.stop();
  });
});

it("what travels between machines is signed with a key of their store, one for each purpose", async () => {
  const use = { stateFolder: "/nonexistent", lost: "", log };
  const at = async (name: string, purpose: "protocol-session" | "request-state") =>
    signingKey({ ...use, purpose, machines: store.seenBy({ name }) });
  const key = await at("n1", "request-state");
  expect(await at("n2", "request-state")).toEqual(key);
  expect(await at("n2", "protocol-session")).not.toEqual(key);
  expect(lines).toEqual([]);
});
