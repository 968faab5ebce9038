import { z } from "zod";

/** Name of a node. */
export const NODE_NAME = /^\w[\w.-]{0,62}$/;

/** Label as one word. Neither part has a comma, because commas separate labels. */
export const LABEL = /^[\w./-]{1,63}=[\w./-]{0,63}$/;

/** Labels of a node, or labels that a session asks for. */
export const Labels = z.record(z.string(), z.string());
export type Labels = z.infer<typeof Labels>;

/**
 * Nodes that may run a session, on a store of several machines. `node`: the node of this name, whose disk has the folder;
 * `volume`: every node with the shared folder of this id; `labels`: every node with these labels, until the first claim binds the
 * session to its node.
 */
export const Place = z.union([
  z.object({ node: z.string() }),
  z.object({ volume: z.string() }),
  z.object({ labels: Labels }),
]);
export type Place = z.infer<typeof Place>;

/** Shared folder of a node. `volume`: id in the marker file at its top, equal on all nodes that have the same folder. */
export const SharedFolder = z.object({ folder: z.string(), volume: z.string() });
export type SharedFolder = z.infer<typeof SharedFolder>;

/** Properties of a node that decide which sessions it may run. */
interface Placing {
  readonly name: string;
  readonly labels: Labels;
  readonly sharedFolders: readonly SharedFolder[];
}

/** True if `node` has the place. A session without a place runs anywhere. */
export function hasPlace(node: Placing, place: Place | undefined): boolean {
  if (place === undefined) return true;
  if ("node" in place) return place.node === node.name;
  if ("volume" in place) return node.sharedFolders.some(({ volume }) => volume === place.volume);
  return Object.entries(place.labels).every(([name, value]) => node.labels[name] === value);
}

/** Describes a place for people. */
export function placeText(place: Place): string {
  if ("node" in place) return `node ${place.node}`;
  if ("volume" in place) return `a node with the shared folder ${place.volume}`;
  const labels = Object.entries(place.labels).map(([name, value]) => `${name}=${value}`);
  return `a node with the labels ${labels.join(", ")}`;
}
