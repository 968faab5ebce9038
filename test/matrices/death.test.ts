import { describe, it } from "vitest";
import { expectNothingLeft, KILLING_NAMES, MEANS, type MeansName } from "../support/server-ends.ts";
import { useWorld } from "../support/world.ts";

/** Every end of a server with every means of ending leftover processes. */

const world = useWorld();

describe.each(Object.keys(MEANS) as MeansName[])("with %s, a server in the middle of a Bash", (means) => {
  it.each(KILLING_NAMES)("leaves nothing behind 10 s after %s", async (name) => expectNothingLeft(world, means, name));
});
