import { afterEach, beforeEach, describe } from "vitest";
import { endTests } from "./suite-ends.ts";
import { feedTests } from "./suite-feed.ts";
import { inboxTests } from "./suite-inbox.ts";
import { leaseTests } from "./suite-leases.ts";
import { ledgerTests } from "./suite-ledger.ts";
import { logTests } from "./suite-log.ts";
import { deliveryTests } from "./suite-deliveries.ts";
import { rowTests } from "./suite-rows.ts";
import { subscriptionTests } from "./suite-subscriptions.ts";
import { type StoreUnderTest, World } from "./vocabulary.ts";

/** The contract of every implementation of `SessionBackend`. No test sleeps: each waits for an event. */
export function storeSuite(name: string, make: () => Promise<StoreUnderTest>): void {
  describe(`store: ${name}`, () => {
    let made: World | undefined;

    beforeEach(async () => (made = await World.begin(await make())));
    afterEach(async () => made?.store.close());

    const world = (): World => made!;
    const storing = [rowTests, leaseTests, logTests, ledgerTests, inboxTests, endTests];
    for (const part of [...storing, feedTests, subscriptionTests, deliveryTests]) part(world);
  });
}
