import { expect, it } from "vitest";

import { readNodes } from "../../src/console/plan.ts";
import { buildDetail } from "../../src/console/rows.ts";
import type { Caller } from "../../src/domain/principal.ts";
import { ownerName, presentNodes, withOtherUsers } from "../../src/engine/nodes.ts";
import type { SessionBackend, SessionRecord, StoreMachines } from "../../src/engine/ports.ts";
import { createMetrics } from "../../src/http/metrics/metrics.ts";
import { listedView, publicView } from "../../src/tools/agent/session/session-fields.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { NodesInMemory } from "../kit/store/nodes-in-memory.ts";
import { session, T0 } from "../kit/store/vocabulary.ts";

/** Nodes of a store of several machines, as shown by the console, the metrics and the tools. */

function withNodes(): { nodes: NodesInMemory; store: SessionBackend } {
  const nodes = new NodesInMemory();
  nodes.renew("1", { name: "gpu", sessions: 2, labels: { gpu: "a100" } });
  nodes.renew("2", { name: "gpu", sessions: 1 });
  nodes.renew("3", { name: "old", isAlive: false, seenAt: 5 });
  nodes.renew("4", { name: "old", isAlive: false, seenAt: 9 });
  nodes.renew("5", { name: "cpu", isDraining: true, sharedFolders: [{ folder: "/srv", volume: "v" }] });
  nodes.renew("6", { name: "cpu", isAlive: false });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing here reads offers or transcripts
  const machines = nodes.seenBy() as StoreMachines;
  return { nodes, store: { ...memoryStore({ tick: () => T0 }).connect("1"), machines } };
}

const user = (principal: string, scopes: Caller["scopes"] = ["read"]): Caller => ({ principal, scopes });

it("living nodes are shown, and of each other name the node seen last", async () => {
  const { store } = withNodes();
  const shown = presentNodes((await store.machines?.nodes()) ?? []);
  expect(shown.map(({ name, nodeId }) => `${name} ${nodeId}`)).toEqual(["cpu 5", "gpu 1", "gpu 2", "old 4"]);
  expect(withOtherUsers(shown, { nodeId: "1", principals: "x" }).map(({ nodeId }) => nodeId)).toEqual(["2"]);
});

it("the page shows nodes to operators only", async () => {
  const { store } = withNodes();
  const [first] = (await readNodes({ store }, user("ann", ["read", "admin"]))).nodes;
  expect(first).toMatchObject({ name: "cpu", state: "draining", sharedFolders: ["/srv"], maxLive: 8, sessions: 0 });
  expect((await readNodes({ store }, user("local"))).nodes).toHaveLength(4);
  expect((await readNodes({ store }, user("ann"))).nodes).toEqual([]);
  expect((await readNodes({ store: memoryStore({ tick: () => T0 }).connect("1") }, user("local"))).nodes).toEqual([]);
});

it("gauges report each name of a node once", async () => {
  const { store } = withNodes();
  const metrics = createMetrics({
    version: "1",
    gaugeSources: () => ({ store, spares: { available: 0 }, budgets: [], now: () => T0 }),
    log: { warn: (message) => expect.fail(message) },
  });
  const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("claude_code_mcp_node_"));
  expect(lines.map((line) => line.slice("claude_code_mcp_node_".length))).toEqual([
    'up{node="cpu"} 1',
    'up{node="gpu"} 1',
    'up{node="old"} 0',
    'draining{node="cpu"} 1',
    'draining{node="gpu"} 0',
    'draining{node="old"} 0',
    'sessions{node="cpu"} 0',
    'sessions{node="gpu"} 3',
    'sessions{node="old"} 0',
    'slots{node="cpu"} 8',
    'slots{node="gpu"} 16',
    'slots{node="old"} 8',
  ]);
});

it("a session is shown with its place and its node, in a list only while a node runs it", async () => {
  const { store } = withNodes();
  const { record: stored } = await store.rows.create(session());
  const place = { volume: "5b0d3c1e" };
  const record = { ...stored, place, owner: { nodeId: "1", alive: true, name: "gpu" } } satisfies SessionRecord;
  expect(publicView(record)).toMatchObject({ place, node: "gpu" });
  expect(listedView(record, {})).toMatchObject({ node: "gpu" });
  expect(listedView(record, {})).not.toHaveProperty("place");
  const sources = { engine: {} as never, titles: { findTitle: async () => Promise.resolve("") } as never };
  expect(await buildDetail(sources, record)).toMatchObject({
    node: "gpu",
    place: "a node with the shared folder 5b0d3c1e",
  });
  const dead = { ...record, owner: { ...record.owner, alive: false } };
  expect(ownerName(dead)).toBeUndefined();
  for (const view of [publicView(dead), listedView(dead, {}), publicView(stored)]) {
    expect(view).not.toHaveProperty("node");
  }
  expect(publicView(stored)).not.toHaveProperty("place");
});
