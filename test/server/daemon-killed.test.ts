import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import type { ClientKind, Person } from "../kit/clients/connection.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** The death of a daemon with many clients. */

const world = useWorld({ agent: "stand-in" });

const ENDED = "The daemon that served this call has ended";

/** The last events of turns in the log of a session. */
async function endsIn(sessionId: string) {
  const events = await storedEvents(join(world.configFolder, ".."), sessionId);
  return events.flatMap(({ type, event }) => (type === "turn.ended" ? [JSON.parse(event) as unknown] : []));
}

it("under eight clients of both eras with three waits and two forms, a daemon that is killed loses its turns once, and all go on with the next", async () => {
  const start = { args: ["--approvals", "user,caller"], env: constants({ shim: false }) };
  const cwd = world.folder();
  let [forms, withdrawn] = [0, 0];
  let answer: () => void = () => undefined;
  const isLate = new Promise<void>((resolve) => (answer = resolve));
  const person: Person = async (_, signal) => {
    forms += 1;
    signal.addEventListener("abort", () => (withdrawn += 1));
    await isLate;
    return { action: "accept", content: { decision: "allow" } };
  };
  const kinds: ClientKind[] = ["modern", "legacy", "modern", "legacy", "modern", "legacy", "v1", "2026-07-28"];
  const clients = await Promise.all(kinds.map(async (client) => world.shared({ ...start, client, person })));
  await Promise.all(clients.map(async (client) => client.call("claude_code_session", { action: "list" })));
  const before = world.daemons();
  expect(before).toHaveLength(1);

  const waiting = clients.slice(0, 3).map(async (client) => {
    const prompt = scriptTag([{ text: "slow", gateBefore: "never" }]);
    const { sessionId } = await client.call("claude_code", { prompt, cwd });
    return { sessionId, answer: client.end(sessionId).then(String, String) };
  });
  const waits = await Promise.all(waiting);
  const askers = clients.slice(3, 5).map(async (client, at) => {
    const tools = [{ name: "Bash", input: { command: `touch made-${String(at)}` } }];
    const { sessionId } = await client.call("claude_code", {
      prompt: scriptTag([{ tools, gateBefore: "forms" }, { text: "ok" }]),
      cwd,
    });
    const poll = { action: "poll", sessionId, waitMs: 40_000, until: "end" };
    return { sessionId, answer: client.call("claude_code_check", poll).then(JSON.stringify, String) };
  });
  const asking = await Promise.all(askers);
  world.model.release("forms");
  await expect.poll(() => forms).toBe(2);

  process.kill(before[0]!, "SIGKILL");
  for (const wait of waits) expect(await wait.answer).toContain(ENDED);
  // A new daemon is there before the old forms are answered.
  await clients[7]!.call("claude_code_session", { action: "list" });
  await expect.poll(() => withdrawn).toBe(1);
  answer();
  const [legacy, modern] = await Promise.all(asking.map(async (each) => each.answer));
  expect(legacy).toContain(ENDED);
  // In the earlier era its form was taken back. One of the later era stands between two calls, of which the second comes to the next daemon.
  expect(modern).toContain('"lost"');

  for (const client of clients) {
    const prompt = scriptTag([{ text: "here" }]);
    expect(await client.call("claude_code", { prompt, cwd, waitMs: 40_000 })).toMatchObject({
      result: { result: "here" },
    });
  }
  for (const { sessionId } of [...waits, ...asking]) {
    expect(await clients[5]!.end(sessionId)).toMatchObject({ status: "error", result: { isError: true } });
    expect(await endsIn(sessionId)).toMatchObject([{ data: { outcome: "lost" } }]);
  }
  expect([0, 1].filter((at) => existsSync(join(cwd, `made-${String(at)}`)))).toEqual([]);
  const after = world.daemons();
  expect(after).toHaveLength(1);
  expect(after).not.toEqual(before);
  await Promise.all(clients.map(async (client) => client.close()));
  await world.closeServers();
  await world.quiet(15_000);
});
