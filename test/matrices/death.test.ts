import { describe, it } from "vitest";
import { ENDS_SHOWN, expectNothingLeft, KILLING_NAMES, MEANS, type MeansName } from "../kit/servers/server-ends.ts";
import { useWorld } from "../kit/world.ts";

/** Every end of a server with every means of ending leftover processes, but those of test/server/death.test.ts. */

const world = useWorld();

describe.each(Object.keys(MEANS) as MeansName[])("with %s, a server in the middle of a Bash", (means) => {
  const others = KILLING_NAMES.filter((name) => !ENDS_SHOWN.some((row) => row[0] === name && row[1] === means));
  it.each(others)("leaves nothing behind 10 s after %s", async (name) => expectNothingLeft(world, means, name));
});
