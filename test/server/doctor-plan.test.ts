import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { accountKey, budgetKey, localDay } from "../../src/domain/ledger.ts";
import { seed } from "../kit/clients/sessions-command.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });

it("`doctor` reads the windows of accounts and today's budgets from the store, and passes over damaged ones", async () => {
  const file = join(world.folder(), "store.db");
  const windows = { five_hour: { source: "headers", usedPercent: 7, at: 1 } };
  const account = { paidBy: "its login", configFolder: "/home/ann/.claude", windows };
  const day = { spentUsd: 8.5, unknownUsd: 0, reserved: { t: 1 } };
  const ann = { scope: "principal", name: "ann" } as const;
  await seed(file, async ({ ledger }) => {
    for (const [key, value] of [
      [accountKey("account:u"), account],
      [accountKey("account:damaged"), { windows: 7 }],
      [budgetKey(ann, localDay(Date.now())), day],
      [budgetKey({ scope: "profile", name: "work: late" }, localDay(Date.now())), day],
      [budgetKey(ann, "2026-01-01"), day],
    ] as const)
      await ledger.update(key, () => value);
  });
  const text = execFileSync(process.execPath, ["dist/doctor/store-process.js", file], { encoding: "utf8" });
  expect(JSON.parse(text)).toMatchObject({
    kind: "opened",
    accounts: [{ ...account, id: "account:u" }],
    budgets: [
      { ...ann, spentUsd: 8.5 },
      { scope: "profile", name: "work: late", spentUsd: 8.5 },
    ],
  });
});
