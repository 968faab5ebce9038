import { describe, it } from "vitest";

import { expectOf, SHOWN, usePeople } from "../kit/people/elicitation.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in", daemon: "auto" });
const at = usePeople(world);

// `test/matrices` has each behaviour at the other kinds of clients.
describe("a person", () => {
  it.each(SHOWN)("%s: %s client over %s", async (title, ...way) => {
    await expectOf(title, await at(...way));
  });
});
