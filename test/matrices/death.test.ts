import { describe, it } from "vitest";
import { ENDS_SHOWN, expectNothingLeft, KILLING_NAMES, MEANS, type MeansName } from "../kit/servers/server-ends.ts";
import { useWorld } from "../kit/world.ts";

/** Every end of a server with every means of ending leftover processes, except the rows of test/server/death.test.ts. */

const world = useWorld();

describe.each(Object.keys(MEANS) as MeansName[])("a server that ends during a Bash, with %s", (means) => {
  const others = KILLING_NAMES.filter((name) => !ENDS_SHOWN.some((row) => row[0] === name && row[1] === means));
  it.each(others)("no process is left 10 s after %s", async (name) => expectNothingLeft(world, means, name));
});
