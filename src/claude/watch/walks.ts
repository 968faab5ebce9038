import { digestOf, isSame } from "./stamp.ts";

export type Stamps = ReadonlyMap<string, string>;

/** Maximum number of stamps kept in memory beside those of running turns: about 40 MB. */
const MAX_STAMPS = 200_000;

/** Stamps of folders outside git, by the digest that a stored state has of them. The least recently used are dropped. */
export class Walks {
  readonly #kept = new Map<string, Stamps>();

  /** Returns the digest. */
  add(stamps: Stamps): string {
    const all = [...stamps].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const digest = digestOf(JSON.stringify(all), 22);
    this.#kept.delete(digest);
    this.#kept.set(digest, stamps);
    let sum = [...this.#kept.values()].reduce((most, { size }) => most + size, 0);
    for (const [name, { size }] of this.#kept) {
      if (sum <= MAX_STAMPS) break;
      this.#kept.delete(name);
      sum -= size;
    }
    return digest;
  }

  find(digest: string | undefined): Stamps | undefined {
    const found = digest === undefined ? undefined : this.#kept.get(digest);
    if (digest === undefined || !found) return undefined;
    this.#kept.delete(digest);
    this.#kept.set(digest, found);
    return found;
  }
}

/** Number of paths with another stamp. */
export function countDifferences(earlier: Stamps, later: Stamps): number {
  const paths = new Set([...earlier.keys(), ...later.keys()]);
  return [...paths].filter((path) => {
    const [was, is] = [earlier.get(path), later.get(path)];
    return was === undefined || is === undefined || !isSame(was, is);
  }).length;
}
