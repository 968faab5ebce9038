import type { NodeRecord, SessionRecord } from "./ports.ts";

/** Shows the nodes of a store. A restarted server is a new node of the same name, so that records of former nodes are left over. */

export type NodeState = "alive" | "draining" | "dead";

export function nodeState({ isAlive, isDraining }: Pick<NodeRecord, "isAlive" | "isDraining">): NodeState {
  if (!isAlive) return "dead";
  return isDraining ? "draining" : "alive";
}

/** Returns living nodes, and of each other name the node seen last; sorted by name. */
export function presentNodes(nodes: readonly NodeRecord[]): NodeRecord[] {
  const living = nodes.filter(({ isAlive }) => isAlive);
  const names = new Set(living.map(({ name }) => name));
  const dead = new Map<string, NodeRecord>();
  for (const node of nodes) {
    const before = dead.get(node.name);
    if (!names.has(node.name) && (before === undefined || before.seenAt < node.seenAt)) dead.set(node.name, node);
  }
  return [...living, ...dead.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Returns the name of the living node that owns a session, on a store of several machines. */
export function ownerName({ owner }: Pick<SessionRecord, "owner">): string | undefined {
  return owner?.alive === true ? owner.name : undefined;
}

/** Returns living nodes that have other users than `node`, drained ones excepted. */
export function withOtherUsers(
  nodes: readonly NodeRecord[],
  node: Pick<NodeRecord, "nodeId" | "principals">,
): NodeRecord[] {
  const counts = (each: NodeRecord) => nodeState(each) === "alive" && each.nodeId !== node.nodeId;
  return nodes.filter((each) => counts(each) && each.principals !== node.principals);
}
