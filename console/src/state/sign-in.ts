import { signal } from "@preact/signals";
import { ApiProblem } from "../net/api.ts";
import { readKey, onKeyChanged } from "../net/key.ts";
import { Backoff } from "../net/backoff.ts";
import { connection } from "./live.ts";
import { dropSignIn, isSignedOut, loadMe, signIn } from "./me.ts";

/** Error of the last sign-in, or of the check for an existing sign-in. */
export const signInProblem = signal<unknown>(undefined);

/** Number of the latest `establishSignIn`; results of earlier calls are ignored. */
let latest = 0;

/** Signs in with `token`, or with the credentials in the browser. Retries while the server is unreachable. */
async function establishSignIn(token: string | undefined): Promise<void> {
  const backoff = new Backoff();
  latest += 1;
  const arrival = latest;
  signInProblem.value = undefined;
  for (;;) {
    try {
      await (token === undefined ? loadMe() : signInByLink(token));
      return;
    } catch (error) {
      if (arrival !== latest) return;
      if (!isTemporary(error)) {
        // Without `token`, a 401 only means that the user has not signed in yet; with `token`, the link is invalid.
        if (!isUnauthorized(error) || token !== undefined) signInProblem.value = error;
        isSignedOut.value = true;
        connection.value = "connecting";
        return;
      }
    }
    connection.value = "lost";
    await backoff.pause();
  }
}

/** Signs in with `token` unless the page is signed in already, because a link must not change the user. */
async function signInByLink(token: string): Promise<void> {
  if (readKey() === undefined) return signIn(token);
  try {
    await loadMe();
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
    await signIn(token);
  }
}

/** True if `establishSignIn` should try again. */
function isTemporary(error: unknown): boolean {
  return error instanceof ApiProblem && (error.status === 0 || error.status === 429 || error.status >= 500);
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 401;
}

/** Signs in with the token of the address, if present, and follows sign-ins of other tabs; see `onKeyChanged`. */
export function startSession(): void {
  void establishSignIn(takeLinkToken());
  addEventListener("hashchange", () => {
    const token = takeLinkToken();
    if (token !== undefined) void establishSignIn(token);
  });
  onKeyChanged(() => {
    if (readKey() === undefined) dropSignIn();
    else void establishSignIn(undefined);
  });
}

const PREFIX = "#token=";

/**
 * Takes the token from `#token=...`, which `claude-agents-mcp console` prints. Removes the token from the address bar and the
 * history at once.
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
