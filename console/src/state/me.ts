import { signal } from "@preact/signals";
import type { Me } from "../../../src/console/wire.ts";
import type { Scope } from "../../../src/domain/principal.ts";
import { get, onSignedOut, post } from "../net/api.ts";
import { keepKey } from "../net/key.ts";
import { approvers } from "./answer-source.ts";

/** Signed-in user and sign-in of the page. */

export const me = signal<Me | undefined>(undefined);
/** True if the server requires a sign-in and the page has none. */
export const isSignedOut = signal(false);
/** True if the sign-in of this page was valid before and is no longer accepted. */
export const hasExpired = signal(false);

export function may(scope: Scope): boolean {
  return me.value?.scopes.includes(scope) === true;
}

/** Loads `me`. Throws `ApiProblem`; a 401 also signs the page out. */
export async function loadMe(): Promise<void> {
  const known = await get<Me>("me");
  approvers.value = known.approvers;
  me.value = known;
  isSignedOut.value = false;
  hasExpired.value = false;
}

/** Throws `ApiProblem` if `token` is unknown. */
export async function signIn(token: string): Promise<void> {
  const { key } = await post<{ key: string }>("sign-in", { token });
  keepKey(key);
  await loadMe();
}

export async function signOut(): Promise<void> {
  await post("sign-out").catch(() => undefined);
  dropSignIn();
}

/** Drops the sign-in of this page, including its key. */
export function dropSignIn(): void {
  keepKey(undefined);
  me.value = undefined;
  isSignedOut.value = true;
}

/** Shows `SignInView` when the server refuses the credentials. */
export function startSignOut(): void {
  onSignedOut(() => {
    if (me.value) hasExpired.value = true;
    dropSignIn();
  });
}
