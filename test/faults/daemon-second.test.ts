import { describe, expect, it } from "vitest";

import { AT_WORK, runShortTurn } from "../kit/faults/daemon-work.ts";
import { commandOf, daemonStatus, reportedShims, shimsOf } from "../kit/faults/shims.ts";
import { freeze } from "../kit/store/freeze.ts";
import { useWorld } from "../kit/world.ts";

/** A daemon that takes the name of a frozen daemon must not end the frozen daemon's shim. */

const world = useWorld({ agent: "stand-in" });
const settings = { drainMs: 0, spares: 1 };

describe("a second daemon under the name of a frozen daemon", () => {
  const rows = { ...AT_WORK, "is starting a Claude Code": AT_WORK["runs a turn"] };
  it.each(Object.entries(rows))("the shim of a frozen daemon that %s survives its successor", async (work, begin) => {
    const env = { HOME: world.folder() };
    const client = await world.shared({ env, settings });
    const hasFrozenShim = work === "is starting a Claude Code";
    await (hasFrozenShim ? AT_WORK["has started nothing"] : begin)(client, world.folder());
    await expect.poll(() => reportedShims(env.HOME), { timeout: 20_000 }).toHaveLength(1);
    const [shim = 0] = reportedShims(env.HOME);
    const [{ pid: first } = { pid: 0 }] = daemonStatus(env.HOME);
    if (hasFrozenShim) {
      process.kill(shim, "SIGSTOP");
      await begin(client, world.folder());
    }
    await freeze(first, env.HOME);
    const next = await world.shared({ env, settings });
    await next.call("claude_code_session", { action: "list" });
    process.kill(shim, "SIGCONT");
    await expect.poll(() => daemonStatus(env.HOME).map(({ pid }) => pid)).not.toContain(first);
    // The second daemon has its own shim only after it has examined the first daemon's leftovers.
    await expect.poll(() => reportedShims(env.HOME).length, { timeout: 20_000 }).toBeGreaterThan(0);
    process.kill(first, "SIGCONT");

    expect(commandOf(shim)).toContain("shim.js");
    expect(await runShortTurn(client, world.folder())).toMatchObject({ result: { result: "done" } });
    expect(shimsOf(world)).toContain(shim);
    await Promise.all([client.close(), next.close()]);
    await world.closeServers();
  });
});
