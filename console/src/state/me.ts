import { signal } from "@preact/signals";
import type { Me } from "../../../src/console/wire.ts";
import type { Scope } from "../../../src/domain/principal.ts";
import { get, onStranger, post } from "../net/api.ts";
import { keepKey } from "../net/key.ts";
import { approvers } from "./approvers.ts";

/** Who looks at the page. */

export const me = signal<Me | undefined>(undefined);
/** Nobody is signed in, which the server requires. */
export const isStranger = signal(false);
/** Somebody was signed in here, and the server knows him no more. */
export const wasPutOut = signal(false);

export function may(scope: Scope): boolean {
  return me.value?.scopes.includes(scope) === true;
}

/** Throws ApiProblem; where that is a 401, the page is a stranger's from now on. */
export async function learnMe(): Promise<void> {
  const known = await get<Me>("me");
  approvers.value = known.approvers;
  me.value = known;
  isStranger.value = false;
  wasPutOut.value = false;
}

/** Throws ApiProblem where the token is not known. */
export async function signIn(token: string): Promise<void> {
  const { key } = await post<{ key: string }>("sign-in", { token });
  keepKey(key);
  await learnMe();
}

export async function signOut(): Promise<void> {
  await post("sign-out").catch(() => undefined);
  forget();
}

/** Nobody is signed in here any more. */
export function forget(): void {
  keepKey(undefined);
  me.value = undefined;
  isStranger.value = true;
}

onStranger(() => {
  if (me.value) wasPutOut.value = true;
  forget();
});
