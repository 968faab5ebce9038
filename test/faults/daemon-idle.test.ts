import { expect, it } from "vitest";

import { constants } from "../kit/servers/constants.ts";
import { isFull } from "../kit/faults/figures.ts";
import { useWorld } from "../kit/world.ts";

/** A daemon that ends for lack of work while clients connect. */

const world = useWorld({ agent: "stand-in" });

it("clients that connect while their daemon ends for lack of work are served", { timeout: 600_000 }, async () => {
  const start = async () => {
    const client = await world.shared({ client: "legacy", env: constants({ daemonIdleMs: 1 }) });
    expect(await client.call("claude_code_session", { action: "list" })).toMatchObject({ sessions: expect.any(Array) });
    return client;
  };
  const daemons = new Set<number>();
  let leaving = await start();
  for (let count = 0; count < (isFull ? 200 : 10); count++) {
    const [, client] = await Promise.all([leaving.close(), start()]);
    for (const pid of world.daemons()) daemons.add(pid);
    // A client without a daemon would print a notice to stderr.
    expect(client.stderr()).toBe("");
    leaving = client;
  }
  await leaving.close();
  expect(daemons.size).toBeGreaterThan(1);
  await expect.poll(() => world.daemons()).toEqual([]);
});
