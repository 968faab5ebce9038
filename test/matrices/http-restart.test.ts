import { afterEach, describe, it } from "vitest";

import { expectRecovery } from "../support/restart.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in" });
afterEach(async () => world.closeServers());

describe("a server over HTTP that ends under load", () => {
  it.each(["SIGKILL", "SIGTERM"] as const)(
    "by %s: clients reconnect to the next one, every session goes on, and nothing is lost, repeated or left",
    { timeout: 180_000 },
    async (signal) => expectRecovery(world, { signal, sessions: 8, clients: 20, drainMs: 8_000, waitMs: 4_000 }),
  );
});
