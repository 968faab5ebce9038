import { it } from "vitest";

import { amount } from "../kit/runner/amount.ts";
import { callsOr, expectNoFaults, SEED } from "../kit/random/trial.ts";
import { useWorld } from "../kit/world.ts";

const CALLS = callsOr(amount(1_000, 10_000));

const world = useWorld({ agent: "stand-in" });

it(`${String(CALLS)} random calls (seed ${String(SEED)}) crash nothing, hang nowhere, and reveal nothing of other users`, async () => {
  await expectNoFaults(world, CALLS);
}, 900_000);
