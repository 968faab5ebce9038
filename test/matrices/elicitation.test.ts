import { describe, it } from "vitest";

import { expectBehaviour, OTHERS, usePeople } from "../kit/people/elicitation.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
const at = usePeople(world);

describe("people at forms", () => {
  it.each(OTHERS)("a person %s: %s client over %s", async (title, ...way) => {
    await expectBehaviour(title, await at(...way));
  });
});
