/**
 * Spelling of each kind of store in `--store`. Has no schema, because the proxy reads settings too and loads none. The schema
 * in `store.ts` uses `SPELLINGS` and refuses texts that match no row.
 */

/** A new kind does not compile without its spelling here, its location in `store.ts` and its case in `store/open.ts`. */
export type StoreKind = "memory" | "postgres" | "sqlite";

interface Spelling {
  /** True if `text` is of this kind. At most one kind matches. */
  readonly matches: (text: string) => boolean;
  /** True if the text is a path, to be made absolute before the schema sees it. */
  readonly isPath: boolean;
  /** True if sessions outlive their server and are visible to others. */
  readonly isShared: boolean;
  /** Says what is wrong with the text, without its secrets; `undefined` if nothing is. */
  readonly problem?: (text: string) => string | undefined;
}

/**
 * Matches SQLite's names for a store in memory and for a file (as paths, each would create an oddly named file), any URL, and
 * one of PostgreSQL without its slashes.
 */
const NO_PATH = /^\s*(?:file:|postgres(?:ql)?:|:memory:\s*$|[a-z][a-z\d+.-]+:\/\/)/i;

/** Value of `--store`. */
export const MEMORY = "memory:";

/** Name in the state folder, without `--store`. */
export const STORE_FILE = "store.db";

/** URL of a PostgreSQL database, by libpq's two names of the scheme. */
const POSTGRES = /^postgres(?:ql)?:\/\//i;

export const SPELLINGS: Readonly<Record<StoreKind, Spelling>> = {
  memory: { matches: (text) => text === MEMORY, isPath: false, isShared: false },
  postgres: { matches: (text) => POSTGRES.test(text), isPath: false, isShared: true, problem: postgresProblem },
  sqlite: { matches: (text) => text !== MEMORY && !NO_PATH.test(text), isPath: true, isShared: true },
};

/** Returns `undefined` for a spelling of no kind. */
export function storeKindOf(text: string): StoreKind | undefined {
  return KINDS.find((kind) => SPELLINGS[kind].matches(text));
}

/** True for a path. Any other text stays as written. */
export function isStorePath(text: string): boolean {
  const kind = storeKindOf(text);
  return kind !== undefined && SPELLINGS[kind].isPath;
}

/** Names of parameters of a URL that hold secrets. */
const SECRET_PARAMETER = /pass(?:word|wd|phrase)?$/i;

function postgresProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return "the URL cannot be read. Write postgres://USER@HOST/DATABASE.";
  const { password, pathname, searchParams } = new URL(text);
  if (password !== "" || [...searchParams.keys()].some((name) => SECRET_PARAMETER.test(name))) {
    const why = "the URL has a password, which lists of processes and client configurations would show";
    return `${why}. Write the password to a private file, and name the file: --store-password-file.`;
  }
  if (/^\/[^/]+$/.test(pathname)) return undefined;
  return "the URL names no database. Write postgres://USER@HOST/DATABASE.";
}

const KINDS = Object.keys(SPELLINGS).filter(isKind);

function isKind(name: string): name is StoreKind {
  return Object.hasOwn(SPELLINGS, name);
}
