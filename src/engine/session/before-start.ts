import { optionsOf, type SessionState } from "../../domain/session.ts";
import type { ActorContext, ActorSession } from "../actor-context.ts";
import type { AgentStart } from "../ports.ts";
import { messageOf } from "../ports/store.ts";
import { waitingNotice } from "../process-limiter.ts";
import type { Happening } from "../step.ts";
import type { MissingTurns } from "../transcripts/missing.ts";
import { findEnvironment } from "./environment.ts";

/** Preparations of a session's process: installation of missing parts, and the search for an environment. */

interface Place extends Pick<ActorContext, "runtime">, Pick<ActorSession, "principal" | "spec"> {}

interface Admission extends Place, Pick<ActorContext, "limiter"> {
  readonly sessionId: string;
  /** Writes the conversation of another node, if there is one. */
  readonly restore: () => Promise<MissingTurns | undefined>;
}

/** Resolves once the process may start: with all parts of Claude Code, a slot, and its conversation. */
export async function admit(
  { limiter, restore, sessionId, ...place }: Admission,
  environmentId: string,
  { left, onSignal }: { readonly left: AbortSignal; readonly onSignal: AgentStart["onSignal"] },
): Promise<void> {
  await installMissing(place, environmentId, { left, onSignal });
  await limiter.acquireSlot(sessionId, left, (wait) => onSignal(waitingNotice(wait)));
  onSignal({ type: "admitted" });
  const restored = await restore();
  if (restored) onSignal({ type: "restored", goesOnFrom: restored.goesOnFrom, missing: restored.missing });
}

/** Installs missing parts of Claude Code. A session given up meanwhile stops waiting, but other sessions may need them. */
async function installMissing(
  { runtime, spec: options }: Place,
  environmentId: string,
  { left, onSignal }: { readonly left: AbortSignal; readonly onSignal: AgentStart["onSignal"] },
): Promise<void> {
  let reported: number | undefined;
  const given = new Promise<never>((_, reject) => {
    left.addEventListener("abort", () => reject(new Error("The process was stopped before it started.")));
  });
  const installed = runtime.installMissing({ environmentId, options }, (now) => {
    const percent = now - (now % PERCENT_STEP);
    if (percent === reported || percent >= 100 || left.aborted) return;
    reported = percent;
    onSignal({ type: "installing", percent });
  });
  await Promise.race([installed, given]);
  if (reported !== undefined) onSignal({ type: "installed" });
}

/** Step of reported progress, percent, because each report is an event of the session's log. */
const PERCENT_STEP = 10;

type Found = Pick<Extract<Happening, { type: "environment" }>, "environmentId" | "refusal">;
type Tell = (found: Found) => void;

interface SearchPlace extends Place, Pick<ActorContext, "backend" | "objectionToStart"> {
  readonly sessionId: string;
}

/** Finds an environment for the process of a turn that goes on after a wait. A new search replaces the former. */
export class EnvironmentSearch {
  readonly #place: SearchPlace;
  #search = new AbortController();

  constructor(place: SearchPlace) {
    this.#place = place;
  }

  /** Calls `tell` with a record now, or with nothing, and again once a client of the session's identity connects. */
  begin(state: SessionState, tell: Tell): void {
    this.end();
    this.#search = new AbortController();
    const { principal, runtime, spec } = this.#place;
    const { environmentId: wanted = "" } = state.senders?.[state.turn?.prompt?.sender ?? ""] ?? {};
    const found = findEnvironment(runtime.environments, { principal, spec, state }, wanted);
    if (found !== undefined) return void this.#check(found).then(tell);
    tell({});
    if (!state.identity) return;
    const about = { principal, options: optionsOf(spec, state) };
    const { signal } = this.#search;
    runtime.environments.find(state.identity, about, Infinity, signal).then(
      async (id) => id !== undefined && tell(await this.#check(id)),
      // The principal is no longer known here: the turn waits on for the next owner.
      () => undefined,
    );
  }

  /** Ends the search, also after its owner has given the session up. */
  end(): void {
    this.#search.abort();
  }

  /** Checks the session as before a prompt: the terms of the server, or of its new owner, may have changed in a long wait. */
  async #check(environmentId: string): Promise<Found> {
    const { backend, objectionToStart, runtime, sessionId } = this.#place;
    // The client may leave before the process has started.
    runtime.environments.hold(sessionId, environmentId);
    const refusal = await backend.rows
      .get(sessionId)
      .then(async (record) => record && (await objectionToStart(record, environmentId))?.message)
      .catch(messageOf);
    return { environmentId, ...(refusal !== undefined && { refusal }) };
  }
}
