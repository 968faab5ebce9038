import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";

/** State folders in which no daemon can be: the client has a server of its own, or the error says what is wrong. */

const root = mkdtempSync(join(tmpdir(), "ccm-state-"));
const mounted: string[] = [];

/** A disk of its own; undefined where this user may mount none. */
function disk(name: string, options: string): string | undefined {
  const folder = join(root, name);
  mkdirSync(folder);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  mounted.push(folder);
  return folder;
}

const readOnly = disk("read-only", "ro");
const full = disk("full", "size=1m");
if (full !== undefined) {
  const { bavail, bsize } = statfsSync(full);
  writeFileSync(join(full, "ballast"), Buffer.alloc(bavail * bsize));
}

afterAll(() => {
  for (const folder of mounted) execFileSync("umount", [folder]);
  rmSync(root, { recursive: true, force: true });
});
// Ended before the disks are taken away: hooks run in the reverse order.
const world = useWorld({ agent: "stand-in" });

const prompt = scriptTag([{ text: "done" }]);

describe.each<[string, string | undefined, string]>([
  ["a read-only disk", readOnly, "cannot be written"],
  ["a full disk", full, "is full"],
])("with a state folder on %s", (_, state, why) => {
  const env = { XDG_STATE_HOME: state ?? "" };

  it.runIf(state !== undefined)("a call is answered with what is wrong", async () => {
    const client = await world.shared({ env });
    const refused = await client.refusal("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    expect(refused).toMatchObject({ code: "INTERNAL", text: expect.stringContaining(why) as string });
    await client.close();
  });

  it.runIf(state !== undefined)("and a store elsewhere, the session runs in the process of the client", async () => {
    const client = await world.shared({ env, args: ["--store", join(world.folder(), "store.db")] });
    const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    expect(answer).toMatchObject({ status: "idle", result: { result: "done" } });
    expect(client.stderr()).toContain("sessions run in this process and end with it");
    expect(world.daemons()).toEqual([]);
    await client.close();
  });
});

it("where the paths below the state folder and the temporary folder are too long for a socket, it is in /tmp", async () => {
  const long = join(world.folder(), "x".repeat(100));
  mkdirSync(long);
  const client = await world.shared({ env: { XDG_STATE_HOME: long, TMPDIR: long } });
  const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
  expect(answer).toMatchObject({ status: "idle", result: { result: "done" } });
  expect(client.stderr()).toBe("");
  expect(world.daemons()).toHaveLength(1);
});
