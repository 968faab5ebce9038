import { expect, it } from "vitest";
import { Connections } from "../../src/app/connections.ts";
import type { OwnCommand, Terms } from "../../src/app/terms.ts";
import { Environments } from "../../src/claude/environments.ts";
import { checked } from "../../src/config/load.ts";

const ignore = () => undefined;
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** What clients of one server leave for the others. */

function connections(): Connections {
  const environments = new Environments(Buffer.from("key"), {});
  return new Connections({ allowsBypass: false, environments, mayAllow: false }, silent);
}

const termsWith = (ownCommands: readonly OwnCommand[]): Terms => ({
  config: checked(new Map()),
  environment: {},
  cwd: () => "/",
  ownCommands,
});

it("command lines of clients stay short enough for one argument of a process, however many clients there were", () => {
  const all = connections();
  for (let count = 0; count < 5_000; count += 1) {
    all.close(all.open(termsWith([["node", "main.js", "--config", `/tmp/of-client-${String(count)}.json`]])));
    all.close(all.open(termsWith([["node", "always"]])));
  }
  const kept = JSON.stringify(all.ownCommands());
  expect(kept.length).toBeLessThan(100_000);
  expect(kept).toContain("of-client-4999.json");
  expect(kept).toContain("always");
  expect(kept).not.toContain("of-client-0.json");
});

it("a command line that is too long takes no other one's place", () => {
  const all = connections();
  all.open(termsWith([["node", "main.js"]]));
  all.open(termsWith([["node", ...Array.from({ length: 10_000 }, () => "x".repeat(300))]]));
  expect(all.ownCommands()).toEqual([["node", "main.js"]]);
});
