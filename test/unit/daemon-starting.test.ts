import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

import { acquireStartMutex } from "../../src/daemon/start-mutex.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ccm-starting-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Kills a process during its turn, so that its socket stays in `folder`. */
async function leaveTurn(name: string): Promise<void> {
  const path = join(folder, `${name}.starting`);
  const listen = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => console.log("listens"));`;
  const child = spawn(process.execPath, ["-e", listen], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "close");
}

it("takeTurn gives the turn of a dead process to one of several that ask for it", async () => {
  await leaveTurn("n");
  const taken = await Promise.all([1, 2, 3].map(async () => acquireStartMutex([folder], "n", 300)));
  const turns = taken.filter((endTurn) => endTurn !== undefined);
  for (const endTurn of turns) endTurn();
  expect(turns).toHaveLength(1);
});
