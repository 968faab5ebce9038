import { dirname } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { runSessions } from "../kit/clients/sessions-command.ts";
import { useWorld } from "../kit/world.ts";

/** Clients that have lost their daemon and connect to the next daemon. */

const world = useWorld({ agent: "stand-in" });

const asks = scriptTag([
  { tools: [{ name: "Bash", input: { command: "touch made" } }], gateBefore: "next" },
  { text: "asked" },
]);

/** Reads the log with `sessions export`, which does not make the session attended. */
async function logged(sessionId: string): Promise<string> {
  return (await runSessions(["export", sessionId], { HOME: dirname(world.configFolder) })).stdout;
}

it("with `--unattended deny`, a client gets its sessions' requests again after the daemon's death, once it makes a call", async () => {
  const [stays, leaves] = await Promise.all(
    ["stays", "leaves"].map(async () => world.shared({ args: ["--unattended", "deny"] })),
  );
  const begin = async (client = stays) => {
    const { sessionId } = await client!.call("claude_code", { prompt: asks, cwd: world.folder() });
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    return sessionId;
  };
  const [own, other] = [await begin(stays), await begin(leaves)];
  for (const pid of world.daemons()) process.kill(pid, "SIGKILL");
  await leaves!.close();
  // The first call may still go to the dead daemon.
  const list = async () => stays!.call("claude_code_session", { action: "list" }).catch(() => undefined);
  await expect.poll(list).toBeDefined();
  world.model.release("next");
  // The new daemon waits for clients of the dead daemon before it denies.
  await expect.poll(async () => logged(other), { timeout: 30_000 }).toContain("denied (--unattended deny)");
  expect((await stays!.news(own)).actions).toMatchObject([{ toolName: "Bash" }]);
});
