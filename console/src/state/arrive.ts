import { signal } from "@preact/signals";
import { ApiProblem } from "../net/api.ts";
import { keyOfPage, onKeyOfOthers } from "../net/key.ts";
import { Patience } from "../net/pause.ts";
import { connection } from "./live.ts";
import { forget, isStranger, learnMe, signIn } from "./me.ts";

/** Why the page could not find out who looks at it, or could not sign him in. */
export const arrivalProblem = signal<unknown>(undefined);

/** Counts arrivals: an answer to an earlier one says nothing about a later one. */
let latest = 0;

/** Signs in with a token that came with the address, or else as whoever this browser was. Waits for a server that is gone. */
export async function arrive(token: string | undefined): Promise<void> {
  const patience = new Patience();
  latest += 1;
  const arrival = latest;
  arrivalProblem.value = undefined;
  for (;;) {
    try {
      await (token === undefined ? learnMe() : arriveWith(token));
      return;
    } catch (error) {
      if (arrival !== latest) return;
      if (!passes(error)) {
        // That nobody is signed in yet is no trouble, a link that does not work is.
        if (!isUnknown(error) || token !== undefined) arrivalProblem.value = error;
        isStranger.value = true;
        connection.value = "connecting";
        return;
      }
    }
    connection.value = "lost";
    await patience.pause();
  }
}

/** A page that is signed in stays so: a link must not make it somebody else's unasked. */
async function arriveWith(token: string): Promise<void> {
  if (keyOfPage() === undefined) return signIn(token);
  try {
    await learnMe();
  } catch (error) {
    if (!isUnknown(error)) throw error;
    await signIn(token);
  }
}

/** Not our fault, and over at some time. */
function passes(error: unknown): boolean {
  return error instanceof ApiProblem && (error.status === 0 || error.status === 429 || error.status >= 500);
}

function isUnknown(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 401;
}

onKeyOfOthers(() => {
  if (keyOfPage() === undefined) forget();
  else void arrive(undefined);
});
