import { it } from "vitest";

import { callsOr, expectNoFaults, SEED } from "../support/random/trial.ts";
import { useWorld } from "../support/world.ts";

/** `test/matrices` makes 10,000. */
const CALLS = callsOr(200);

const world = useWorld({ agent: "stand-in" });

it(`${String(CALLS)} random calls (seed ${String(SEED)}) crash nothing, hang nowhere, and reveal nothing of other users`, async () => {
  await expectNoFaults(world, CALLS);
}, 120_000);
