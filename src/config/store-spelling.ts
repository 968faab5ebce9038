/**
 * How `--store` spells each kind of store. Without a schema, because the proxy reads settings too and loads none. The schema
 * (store.ts) reads the same table, and refuses what no row of it matches.
 */

/** A new kind does not compile without its spelling here, its location in store.ts and its case in store/open.ts. */
export type StoreKind = "memory" | "sqlite";

interface Spelling {
  /** Whether a text is of this kind; it is of one at most. */
  readonly matches: (text: string) => boolean;
  /** The text is a path, which is made absolute before the schema sees it. */
  readonly isPath: boolean;
  /** Sessions outlive their server, and other servers see them. */
  readonly isShared: boolean;
}

/** SQLite's names for a store in memory and for a file (as a path, each would create a file of this name), and any URL. */
const NO_PATH = /^\s*(?:file:|:memory:\s*$|[a-z][a-z\d+.-]+:\/\/)/i;

/** As `--store` takes it. */
export const MEMORY = "memory:";

/** Without `--store`, in the state folder. */
export const STORE_FILE = "store.db";

export const SPELLINGS: Readonly<Record<StoreKind, Spelling>> = {
  memory: { matches: (text) => text === MEMORY, isPath: false, isShared: false },
  sqlite: { matches: (text) => text !== MEMORY && !NO_PATH.test(text), isPath: true, isShared: true },
};

/** Undefined for a spelling of no kind. */
export function storeKindOf(text: string): StoreKind | undefined {
  return KINDS.find((kind) => SPELLINGS[kind].matches(text));
}

/** The text is left as it was written unless it is a path. */
export function isStorePath(text: string): boolean {
  const kind = storeKindOf(text);
  return kind !== undefined && SPELLINGS[kind].isPath;
}

const KINDS = Object.keys(SPELLINGS).filter(isKind);

function isKind(name: string): name is StoreKind {
  return Object.hasOwn(SPELLINGS, name);
}
