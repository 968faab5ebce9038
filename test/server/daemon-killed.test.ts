import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import type { ClientKind, Person } from "../kit/clients/connection.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** Tests the death of a daemon with many clients. */

const world = useWorld({ agent: "stand-in" });

const ENDED = "The daemon that served this call has ended";

/** Returns the events `turn.ended` in the log of a session. */
async function readTurnEnds(sessionId: string) {
  const events = await storedEvents(join(world.configFolder, ".."), sessionId);
  return events.flatMap(({ type, event }) => (type === "turn.ended" ? [JSON.parse(event) as unknown] : []));
}

it("a daemon killed under eight clients of both eras loses its turns once, and all clients go on with the next", async () => {
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
  // Makes a client start the next daemon before the old forms are answered.
  await clients[7]!.call("claude_code_session", { action: "list" });
  await expect.poll(() => withdrawn).toBe(1);
  answer();
  const [legacy, modern] = await Promise.all(asking.map(async (each) => each.answer));
  expect(legacy).toContain(ENDED);
  // In the earlier era the form was withdrawn. In the later era a form is open between two calls, and the second call reaches
  // the next daemon.
  expect(modern).toContain('"lost"');

  for (const client of clients) {
    const prompt = scriptTag([{ text: "here" }]);
    expect(await client.call("claude_code", { prompt, cwd, waitMs: 40_000 })).toMatchObject({
      result: { result: "here" },
    });
  }
  for (const { sessionId } of [...waits, ...asking]) {
    expect(await clients[5]!.end(sessionId)).toMatchObject({ status: "error", result: { isError: true } });
    expect(await readTurnEnds(sessionId)).toMatchObject([{ data: { outcome: "lost" } }]);
  }
  expect([0, 1].filter((at) => existsSync(join(cwd, `made-${String(at)}`)))).toEqual([]);
  const after = world.daemons();
  expect(after).toHaveLength(1);
  expect(after).not.toEqual(before);
  await Promise.all(clients.map(async (client) => client.close()));
  await world.closeServers();
  await world.quiet(15_000);
});
