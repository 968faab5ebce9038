import { expect, it } from "vitest";
import { Connections } from "../../src/app/connections.ts";
import type { OwnCommand, Terms } from "../../src/app/terms.ts";
import { EnvironmentRecords } from "../../src/claude/environment-records.ts";
import { checkedConfig } from "../../src/config/load.ts";

const ignore = () => undefined;
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Command lines of clients, kept by `Connections` after the clients have left. */

function makeConnections(): Connections {
  const environments = new EnvironmentRecords(Buffer.from("key"), {});
  return new Connections({ allowsBypass: false, environments, mayAllow: false }, silent);
}

const termsWith = (ownCommands: readonly OwnCommand[]): Terms => ({
  config: checkedConfig(new Map()),
  environment: {},
  cwd: () => "/",
  ownCommands,
});

it("command lines of clients stay below 100,000 characters, however many clients there were", () => {
  const connections = makeConnections();
  for (let count = 0; count < 5_000; count += 1) {
    connections.close(
      connections.open(termsWith([["node", "main.js", "--config", `/tmp/of-client-${String(count)}.json`]])),
    );
    connections.close(connections.open(termsWith([["node", "always"]])));
  }
  const kept = JSON.stringify(connections.ownCommands());
  expect(kept.length).toBeLessThan(100_000);
  expect(kept).toContain("of-client-4999.json");
  expect(kept).toContain("always");
  expect(kept).not.toContain("of-client-0.json");
});

it("a command line that is too long displaces no other", () => {
  const connections = makeConnections();
  connections.open(termsWith([["node", "main.js"]]));
  connections.open(termsWith([["node", ...Array.from({ length: 10_000 }, () => "x".repeat(300))]]));
  expect(connections.ownCommands()).toEqual([["node", "main.js"]]);
});
