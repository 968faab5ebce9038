import type { Problem } from "../../../src/console/wire.ts";
import { readKey } from "./key.ts";

/** Requests to the page's own server. Refusals are thrown as `ApiProblem`. */

export const ROOT = new URL("api/", location.href.replace(/[?#].*$/, ""));

/** Refusal of the server. Without an answer, `status` is 0 and `error` "unreachable". */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  readonly status: number;
  /** Code of the refusal, `Problem.error`, such as "already_answered". */
  readonly error: string;

  constructor(status: number, { error, message }: Problem) {
    super(message);
    this.status = status;
    this.error = error;
  }
}

/** `path` is relative to /console/api/. Leaves out `undefined` in `query` and repeats lists. */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return readJson<T>(await send(path, { query, ...(signal && { signal }) }));
}

export async function post<T>(path: string, body: object = {}): Promise<T> {
  const headers = { "content-type": "application/json" };
  return readJson<T>(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

export type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Returns the unread response, for streams. Throws `ApiProblem` unless the status is 2xx. */
export async function send(path: string, { query = {}, ...init }: RequestInit & { query?: Query }): Promise<Response> {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) if (each !== undefined) url.searchParams.append(name, String(each));
  }
  const headers = new Headers(init.headers);
  const key = readKey();
  headers.set("x-console-key", key ?? "");
  const response = await fetch(url, { ...init, headers, cache: "no-store" }).catch((error: unknown) => {
    if (init.signal?.aborted === true) throw error;
    throw new ApiProblem(0, { error: "unreachable", message: "The server does not answer." });
  });
  if (response.ok) return response;
  // A 401 counts only for the current key: if another tab has signed in meanwhile, `key` is obsolete.
  if (response.status === 401 && readKey() === key) for (const listener of signedOutListeners) listener();
  throw new ApiProblem(response.status, await readProblem(response));
}

const signedOutListeners = new Set<() => void>();

/** Calls `listener` when the server refuses the credentials of this page. */
export function onSignedOut(listener: () => void): void {
  signedOutListeners.add(listener);
}

export async function readJson<T>(response: Response): Promise<T> {
  const body: T = await response.json();
  return body;
}

async function readProblem(response: Response): Promise<Problem> {
  const fallback = { error: "refused", message: `The server answered ${String(response.status)}.` };
  try {
    return { ...fallback, ...(await readJson<Partial<Problem>>(response)) };
  } catch {
    return fallback;
  }
}

/** Message for the user; `error` may be any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Returns an idempotency key, so that repeating a prompt after a lost answer has no effect. Not `crypto.randomUUID`, which is
 * missing if the page comes over plain HTTP from another machine.
 */
export function newRetryKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
