import { describe, it } from "vitest";

import { expectBehaviour, SHOWN, usePeople } from "../kit/people/elicitation.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in", daemon: "auto" });
const at = usePeople(world);

// `test/matrices` has each behaviour at the remaining kinds of clients.
describe("a person at a form", () => {
  it.each(SHOWN)("a person %s: %s client over %s", async (title, ...way) => {
    await expectBehaviour(title, await at(...way));
  });
});
