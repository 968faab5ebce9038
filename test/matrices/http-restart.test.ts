import { afterEach, describe, it } from "vitest";

import { amount } from "../kit/runner/amount.ts";
import { expectRecovery } from "../kit/servers/restart.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
afterEach(async () => world.closeServers());

describe("a server over HTTP that ends under load", () => {
  it.each(["SIGKILL", "SIGTERM"] as const)(
    "clients and sessions continue with the next server after %s; nothing is lost, repeated or left behind",
    { timeout: 180_000 },
    async (signal) => {
      const [sessions, clients] = [amount(4, 8), amount(12, 20)];
      await expectRecovery(world, { signal, sessions, clients, drainMs: 8_000, waitMs: 4_000 });
    },
  );
});
