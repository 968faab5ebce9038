import { cpSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Tests clients of two versions at once, as after an upgrade. */

const world = useWorld({ agent: "stand-in" });
const REPOSITORY = join(import.meta.dirname, "../..");

/** Copies the program with another build id, as an upgrade does. */
function otherBuild(): string {
  const root = mkdtempSync(join(world.folder(), "build-"));
  cpSync(join(REPOSITORY, "dist"), join(root, "dist"), { recursive: true });
  cpSync(join(REPOSITORY, "package.json"), join(root, "package.json"));
  symlinkSync(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
  writeFileSync(join(root, "dist", "build-id.txt"), "another-build");
  return join(root, "dist/cli/main.js");
}

async function expectWork(client: Server): Promise<void> {
  const prompt = scriptTag([{ text: "done" }]);
  const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
  expect(answer).toMatchObject({ status: "idle", result: { result: "done" } });
}

it("two versions have a daemon each, and the older one ends when its client has left", async () => {
  const env = constants({ daemonIdleMs: 2000 });
  const main = otherBuild();
  const older = await world.shared({ env });
  await expectWork(older);
  const [ofOlder] = world.daemons();
  const newer = await world.shared({ env, main });
  const another = await world.shared({ env, main });
  for (const client of [newer, older, another, older, newer]) await expectWork(client);
  const both = world.daemons();
  expect(both).toHaveLength(2);
  await older.close();
  await expect.poll(() => world.daemons(), { timeout: 30_000 }).toEqual(both.filter((pid) => pid !== ofOlder));
  await expectWork(newer);
  expect([older, newer, another].map((client) => client.stderr())).toEqual(["", "", ""]);
});
