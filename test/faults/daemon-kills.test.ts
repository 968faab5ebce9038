import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { ClientKind, Person } from "../support/connection.ts";
import { isFull } from "../support/faults/figures.ts";
import { storedEvents } from "../support/store/stored.ts";
import { useWorld } from "../support/world.ts";

/** The death of a daemon, and its end, with many clients. */

const world = useWorld({ agent: "stand-in" });

const ENDED = "The daemon that served this call has ended";

/** The last events of turns in the log of a session. */
async function endsIn(sessionId: string) {
  const events = await storedEvents(join(world.configFolder, ".."), sessionId);
  return events.flatMap(({ type, event }) => (type === "turn.ended" ? [JSON.parse(event) as unknown] : []));
}

it("under eight clients of both eras with three waits and two forms, a daemon that is killed loses its turns once, and all go on with the next", async () => {
  const args = ["--approvals", "user,caller"];
  const cwd = world.folder();
  let forms = 0;
  let answer: () => void = () => undefined;
  const isLate = new Promise<void>((resolve) => (answer = resolve));
  const person: Person = async () => {
    forms += 1;
    await isLate;
    return { action: "accept", content: { decision: "allow" } };
  };
  const kinds: ClientKind[] = ["modern", "legacy", "modern", "legacy", "modern", "legacy", "v1", "2026-07-28"];
  const clients = await Promise.all(kinds.map(async (client) => world.shared({ args, client, person })));
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
  answer();
  const [legacy, modern] = await Promise.all(asking.map(async (each) => each.answer));
  expect(legacy).toContain(ENDED);
  // A form of the later era stands between two calls, of which the second comes to the next daemon.
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

it("clients that come while their daemon ends for lack of work are served", { timeout: 600_000 }, async () => {
  const start = async () => {
    const client = await world.shared({ args: ["--daemon-idle-ms", "1"] });
    expect(await client.call("claude_code_session", { action: "list" })).toMatchObject({ sessions: expect.any(Array) });
    return client;
  };
  const daemons = new Set<number>();
  let leaving = await start();
  for (let count = 0; count < (isFull ? 200 : 10); count++) {
    const [, client] = await Promise.all([leaving.close(), start()]);
    for (const pid of world.daemons()) daemons.add(pid);
    // Had there been no daemon to be had, the client would have been told.
    expect(client.stderr()).toBe("");
    leaving = client;
  }
  await leaving.close();
  expect(daemons.size).toBeGreaterThan(1);
  await expect.poll(() => world.daemons()).toEqual([]);
});
