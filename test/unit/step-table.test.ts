import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { statusOf } from "../../src/domain/session.ts";
import { type Input, step } from "../../src/engine/step.ts";
import { inputFor, inputsFor, STATE_NAMES, walkTo } from "../kit/step/cases.ts";
import { aged, deepFreeze, findFaults } from "../kit/step/invariants.ts";
import { TABLE } from "../kit/step/rows.ts";
import { summarizeStep } from "../kit/step/walk.ts";

const ROWS = STATE_NAMES.flatMap((state) => (TABLE[state] ?? []).map((row) => [state, ...row] as const));

describe("step", () => {
  it.each(ROWS)("in state %s, the input %s yields [%s] and the status %s", (name, input, told, status) => {
    const walk = walkTo(name);
    const done = step(deepFreeze(walk.state), inputFor(walk, input), walk.policy, walk.known);
    expect([summarizeStep(done), statusOf(done.state)]).toEqual([told, status]);
  });

  it.each(STATE_NAMES)("step keeps every invariant for every input in state %s", (name) => {
    const walk = walkTo(name);
    const before = deepFreeze(walk.state);
    const broken = inputsFor(walk).flatMap(([input, each]) =>
      findFaults(before, each, walk, step(before, each, walk.policy, walk.known)).map((fault) => `${input}: ${fault}`),
    );
    expect(broken).toEqual([]);
  });

  it.each(STATE_NAMES)("step ignores signals of an old process in state %s", (name) => {
    const walk = walkTo(name);
    const old = inputsFor(walk).filter(([input]) => input.endsWith("of an old process"));
    expect(old.length).toBeGreaterThan(10);
    const nothing = (each: Input) => ({
      state: aged(walk.state, each, walk.policy),
      events: [],
      effects: [],
      ledger: [],
    });
    const heard = old.filter(
      ([, each]) => !isDeepStrictEqual(step(walk.state, each, walk.policy, walk.known), nothing(each)),
    );
    expect(heard.map(([input]) => input)).toEqual([]);
  });
});
