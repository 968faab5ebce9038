import { join } from "node:path";
import { expect, it } from "vitest";
import { addSession, HOUR, id, NOW, promptEvent, runProgram, seed, turn } from "../kit/clients/sessions-command.ts";
import { constants } from "../kit/servers/constants.ts";
import { useWorld } from "../kit/world.ts";

/** A session that waits at a limit keeps its daemon, and outlives an orderly end. */

const world = useWorld({ agent: "stand-in" });

it("a daemon without clients stays for a session that waits at a limit, and a later daemon has the session too", async () => {
  const file = join(world.folder(), "store.db");
  const waiting = { kind: "usage_limit", window: "five_hour", since: NOW, until: NOW + HOUR, leftMs: HOUR } as const;
  const args = await seed(file, async (node) =>
    addSession(node, id(1), { events: [promptEvent("Do it.")], state: { turn, waiting } }),
  );
  const env = constants({ daemonIdleMs: 300 });
  const daemon = async (...words: string[]) => runProgram(["daemon", ...words], world.environment);
  const visit = async (store: readonly string[]) => {
    const client = await world.shared({ args: [...store], env });
    const answer = await client.call("claude_code_session", { action: "list" });
    await client.close();
    return answer;
  };
  const listed = { sessions: [{ sessionId: id(1), status: "running" }] };
  expect(await visit(args)).toMatchObject(listed);
  const [first] = world.daemons();
  expect(await visit(["--store", join(world.folder(), "other.db")])).toMatchObject({ sessions: [] });
  // The daemon of the other store has nothing to wait for.
  await expect.poll(() => world.daemons()).toEqual([first]);
  const status = await daemon("status", "--json");
  const waits = { kind: "usage_limit", until: waiting.until };
  const about = { pid: first, proxies: 0, sessions: 1, turns: [{ sessionId: id(1), title: "", waits }] };
  expect(JSON.parse(status.stdout)).toMatchObject({ daemons: [about] });
  const until = new Date(waiting.until).toISOString();
  expect((await daemon("status")).stdout).toContain(
    `\n  waiting at limits: 1 session, at the earliest until ${until}\n`,
  );
  const stopped = await daemon("stop");
  expect(stopped).toMatchObject({ status: 0, stdout: "1 daemon stopped.\n" });
  expect(stopped.stderr).toContain("Waiting at limits: 1 session, for the next daemon to go on with.\n");
  expect(await visit(args)).toMatchObject(listed);
  await expect.poll(async () => (await daemon("status")).stdout).toContain("ready, 0 clients, 1 session at work");
});
