import { expect, it } from "vitest";
import { accountKey } from "../../src/domain/ledger.ts";
import { LOCAL_PRINCIPAL } from "../../src/domain/principal.ts";
import { initialState, type SessionState } from "../../src/domain/session.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { readKnown } from "../../src/engine/session/limits-reader.ts";
import type { Arrival } from "../../src/engine/step.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { RESERVE } from "../kit/step/limit-cases.ts";
import { walkTo } from "../kit/step/cases.ts";
import { ScriptedRuntime } from "../kit/step/scripted-runtime.ts";
import { T0 } from "../kit/step/walk.ts";

/** Reads for a step of a session with a reserve: they cost each step time, so only steps that need them have them. */

const say = (signal: AgentSignal): Arrival => ({ type: "signal", processId: "p", signal, at: T0, tick: 0 });
const message = { type: "message", message: { type: "assistant" } } as const;
const text = say(message);
const toolCall = say({ ...message, toolUseId: "toolu_1" });
const alive = say({ type: "alive" });

/** Reads for a step of `batch`. Returns the account that the step gets, and the keys read. */
async function readFor(batch: readonly Arrival[], state: SessionState = walkTo("running").state) {
  const keys: string[] = [];
  const runtime = new ScriptedRuntime();
  const ledger = { read: async (all: readonly string[]) => Promise.resolve((keys.push(...all), [])) };
  const placement = { whyAway: async () => Promise.resolve(undefined) };
  const place = { backend: { ledger }, clock: new ManualClock(), placement, runtime };
  const session = { place: undefined, principal: LOCAL_PRINCIPAL, spec: { cwd: "/repo" }, policy: RESERVE };
  const { accountId } = await readKnown(place as never, session, state, batch);
  return { accountId, keys };
}

it.each([
  ["text and signs of life of a running turn", [text, alive, text], []],
  ["a tool call among them", [text, toolCall], [accountKey("account:ann")]],
  ["the end of the turn among them", [text, say({ type: "idle" })], [accountKey("account:ann")]],
  ["a look at the clock", [{ type: "tick", at: T0, tick: 0 } as const], [accountKey("account:ann")]],
])("a step of %s reads the ledger only if it may decide by it", async (_, batch, keys) => {
  expect(await readFor(batch)).toMatchObject({ keys });
});

it("a step without a running turn reads the ledger", async () => {
  expect(await readFor([text], initialState(T0))).toMatchObject({ accountId: "account:ann" });
});

it("a step goes by the account that the session's process has reported, even without the environment of its client", async () => {
  const { state } = walkTo("running");
  const of = (process: object) => ({ ...state, environmentId: "gone", process: { ...state.process, ...process } });
  const reported = of({ accountId: "account:bea" }) as SessionState;
  expect(await readFor([toolCall], reported)).toEqual({ accountId: "account:bea", keys: [accountKey("account:bea")] });
  const unknown = of({}) as SessionState;
  expect(await readFor([toolCall], unknown)).toEqual({ accountId: undefined, keys: [] });
});
