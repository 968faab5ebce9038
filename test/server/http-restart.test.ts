import { afterEach, describe, it } from "vitest";

import { expectRecovery } from "../support/restart.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in" });
afterEach(async () => world.closeServers());

describe("a server over HTTP that ends under load", () => {
  it.each(["SIGKILL", "SIGTERM"] as const)(
    "%s: clients come back to the next one, every session goes on, nothing is lost, told twice or left",
    { timeout: 180_000 },
    // A client of each kind.
    async (signal) => expectRecovery(world, { signal, sessions: 4, clients: 7, drainMs: 4_000, waitMs: 2_000 }),
  );
});
