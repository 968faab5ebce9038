import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";

/** State folders that cannot hold a daemon: the client has a server of its own, or an error names the reason. */

const root = mkdtempSync(join(tmpdir(), "ccm-state-"));
const mounted: string[] = [];

/** Mounts a separate disk; `undefined` if this user may not mount. */
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
// Hooks run in reverse order: `world` must close before the disks are unmounted.
const world = useWorld({ agent: "stand-in" });

const prompt = scriptTag([{ text: "done" }]);

describe.each<[string, string | undefined, string]>([
  ["a read-only disk", readOnly, "cannot be written"],
  ["a full disk", full, "is full"],
])("with a state folder on %s", (_, state, why) => {
  const env = { XDG_STATE_HOME: state ?? "" };

  it.runIf(state !== undefined)("a call is answered with the reason", async () => {
    const client = await world.shared({ env });
    const refused = await client.refusal("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    expect(refused).toMatchObject({ code: "INTERNAL", text: expect.stringContaining(why) as string });
    await client.close();
  });

  it.runIf(state !== undefined)("with a store elsewhere, the session runs in the client's process", async () => {
    const client = await world.shared({ env, args: ["--store", join(world.folder(), "store.db")] });
    const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    expect(answer).toMatchObject({ status: "idle", result: { result: "done" } });
    expect(client.stderr()).toContain("sessions run in this process and end with it");
    expect(world.daemons()).toEqual([]);
    await client.close();
  });
});

it("a socket is in /tmp if paths below the state folder and the temporary folder are too long", async () => {
  const long = join(world.folder(), "x".repeat(100));
  mkdirSync(long);
  const client = await world.shared({ env: { XDG_STATE_HOME: long, TMPDIR: long } });
  const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
  expect(answer).toMatchObject({ status: "idle", result: { result: "done" } });
  expect(client.stderr()).toBe("");
  expect(world.daemons()).toHaveLength(1);
});
