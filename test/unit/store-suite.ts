import { afterEach, beforeEach, describe } from "vitest";
import { endTests } from "./store-suite-ends.ts";
import { inboxTests } from "./store-suite-inbox.ts";
import { leaseTests } from "./store-suite-leases.ts";
import { logTests } from "./store-suite-log.ts";
import { rowTests } from "./store-suite-rows.ts";
import { type StoreUnderTest, World } from "./store-world.ts";

/** What every engine of SessionBackend must do. No test sleeps: each waits for what must happen. */
export function storeSuite(name: string, make: () => Promise<StoreUnderTest>): void {
  describe(`store: ${name}`, () => {
    let made: World | undefined;

    beforeEach(async () => (made = await World.begin(await make())));
    afterEach(async () => made?.store.close());

    const world = (): World => made!;
    for (const part of [rowTests, leaseTests, logTests, inboxTests, endTests]) part(world);
  });
}
