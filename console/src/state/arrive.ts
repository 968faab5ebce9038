import { signal } from "@preact/signals";
import { ApiProblem } from "../net/api.ts";
import { keyOfPage, onKeyOfOthers } from "../net/key.ts";
import { Backoff } from "../net/backoff.ts";
import { connection } from "./live.ts";
import { forget, isSignedOut, loadMe, signIn } from "./me.ts";

/** Why the page could not find out who is signed in, or could not sign in. */
export const arrivalProblem = signal<unknown>(undefined);

/** Counts arrivals: an answer to an earlier one says nothing about a later one. */
let latest = 0;

/** Signs in with `token`, or with the credentials that the browser has. Waits for a server that is unreachable. */
async function arrive(token: string | undefined): Promise<void> {
  const backoff = new Backoff();
  latest += 1;
  const arrival = latest;
  arrivalProblem.value = undefined;
  for (;;) {
    try {
      await (token === undefined ? loadMe() : arriveWith(token));
      return;
    } catch (error) {
      if (arrival !== latest) return;
      if (!isTemporary(error)) {
        // Not being signed in yet is no problem; a link that does not work is one.
        if (!isUnknown(error) || token !== undefined) arrivalProblem.value = error;
        isSignedOut.value = true;
        connection.value = "connecting";
        return;
      }
    }
    connection.value = "lost";
    await backoff.pause();
  }
}

/** A link must not change the user of a page that is signed in. */
async function arriveWith(token: string): Promise<void> {
  if (keyOfPage() === undefined) return signIn(token);
  try {
    await loadMe();
  } catch (error) {
    if (!isUnknown(error)) throw error;
    await signIn(token);
  }
}

/** Temporary: worth another attempt. */
function isTemporary(error: unknown): boolean {
  return error instanceof ApiProblem && (error.status === 0 || error.status === 429 || error.status >= 500);
}

function isUnknown(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 401;
}

/** Signs in with the token of the address, if it has one, and follows sign-ins of other tabs. */
export function startSession(): void {
  void arrive(takeLinkToken());
  addEventListener("hashchange", () => {
    const token = takeLinkToken();
    if (token !== undefined) void arrive(token);
  });
  onKeyOfOthers(() => {
    if (keyOfPage() === undefined) forget();
    else void arrive(undefined);
  });
}

const PREFIX = "#token=";

/**
 * `claude-agents-mcp console` prints an address that ends in `#token=...`. The token is removed from the address bar and the
 * history as soon as it is read.
 */
function takeLinkToken(): string | undefined {
  if (!location.hash.startsWith(PREFIX)) return undefined;
  const found = location.hash.slice(PREFIX.length);
  history.replaceState(null, "", location.pathname + location.search);
  try {
    return decodeURIComponent(found);
  } catch {
    return found;
  }
}
