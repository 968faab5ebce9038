import { describe, it } from "vitest";

import { BEHAVIOURS, expectOf, usePeople, WAYS } from "../support/elicitation.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in" });
const at = usePeople(world);

describe.each(WAYS)("a person at a %s client over %s", (...way) => {
  it.each(Object.keys(BEHAVIOURS))("%s", async (title) => {
    await expectOf(title, await at(...way));
  });
});
