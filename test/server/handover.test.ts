import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { allowRequest, waitForRequest } from "../kit/faults/driving.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** A daemon dies in a turn of the real Claude Code, and the next daemon continues the turn. */

const world = useWorld();
const args = ["--allow-rules", "Bash"];

/** Command that appends `at`, and pid and start time of its Claude Code, to `file`. */
const note = (at: number, file: string) => `echo "${String(at)} $PPID $(cut -d ' ' -f 22 /proc/$PPID/stat)" >> ${file}`;

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}

async function begin(client: Server, { cwd, steps }: { steps: object[]; cwd: string }): Promise<string> {
  const prompt = scriptTag([...(steps as Parameters<typeof scriptTag>[0]), { text: "done" }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd });
  return sessionId;
}

async function killDaemons(): Promise<void> {
  const all = world.daemons();
  for (const pid of all) process.kill(pid, "SIGKILL");
  await expect.poll(() => world.daemons().filter((pid) => all.includes(pid))).toEqual([]);
}

/** Resolves when the next daemon serves `client`. Calls under way at the death of the former daemon fail. */
async function untilServed(client: Server): Promise<void> {
  await expect
    .poll(async () => client.call("claude_code_session", { action: "list" }).catch(() => undefined), {
      timeout: 30_000,
    })
    .toBeTruthy();
}

/** Expects a single Claude Code process, each tool and each event once, and events in order. */
async function expectWhole(
  client: Pick<Server, "end">,
  { calls, file, sessionId }: { calls: number; file: string; sessionId: string },
) {
  const ended = await client.end(sessionId, 1);
  expect([ended.status, ended.result?.result, ended.result?.isError]).toEqual(["idle", "done", false]);
  const ran = readLines(file).map((line) => line.split(" "));
  expect(ran.map(([at]) => at)).toEqual(Array.from({ length: calls }, (_, at) => String(at)));
  expect(new Set(ran.map(([, ...who]) => who.join(" "))).size).toBe(1);
  const log = await storedEvents(join(world.configFolder, ".."), sessionId);
  expect(log.map(({ id }) => id)).toEqual(log.map((_, at) => at + 1));
  const messages = log.flatMap(({ event, type }) =>
    type === "message" ? [(JSON.parse(event) as { data: { message: { uuid?: string } } }).data.message] : [],
  );
  const uuids = messages.flatMap(({ uuid }) => uuid ?? []);
  expect(new Set(uuids).size).toBe(uuids.length);
  const count = (name: string) => log.filter(({ type }) => type === name).length;
  expect([count("turn.started"), count("turn.ended"), count("result")]).toEqual([1, 1, count("result")]);
  return log;
}

it(
  "a turn goes on in the same process when its daemon is killed during a tool, with and without a client",
  { timeout: 120_000 },
  async () => {
    for (const isConnected of [true, false]) {
      const first = await world.shared({ args });
      const cwd = world.folder();
      const [file, go] = [join(cwd, "ran.txt"), join(cwd, "go")];
      const waits = `${note(1, file)}; until [ -e ${go} ]; do sleep 0.05; done`;
      const commands = [note(0, file), waits, note(2, file)];
      const steps = commands.map((command) => ({ tools: [{ name: "Bash", input: { command } }] }));
      const sessionId = await begin(first, { steps, cwd });
      await expect.poll(() => readLines(file), { timeout: 30_000 }).toHaveLength(2);
      if (!isConnected) await first.close();
      await killDaemons();
      writeFileSync(go, "");
      // Without a client, the shim restarts the daemon, and the turn goes on.
      await expect.poll(() => readLines(file), { timeout: 30_000 }).toHaveLength(3);
      const next = isConnected ? first : await world.shared({ args });
      await untilServed(next);
      const log = await expectWhole(next, { calls: 3, file, sessionId });
      expect(log.filter(({ event, type }) => type === "notice" && event.includes("owner.changed"))).toHaveLength(1);
      await next.close();
    }
  },
);

it("a request left open by a killed daemon is answered through the next daemon", { timeout: 120_000 }, async () => {
  const first = await world.shared({ args });
  const cwd = world.folder();
  const file = join(cwd, "ran.txt");
  const write = { tools: [{ name: "Write", input: { file_path: join(cwd, "written.txt"), content: "once" } }] };
  const [before, after] = [0, 1].map((at) => ({ tools: [{ name: "Bash", input: { command: note(at, file) } }] }));
  const sessionId = await begin(first, { steps: [before!, write, after!], cwd });
  const asked = await waitForRequest(first, sessionId);
  await first.close();
  await killDaemons();
  const next = await world.shared({ args });
  await untilServed(next);
  const again = await waitForRequest(next, sessionId);
  expect(again.actions.map(({ requestId }) => requestId)).toEqual(asked.actions.map(({ requestId }) => requestId));
  await allowRequest(next, sessionId);
  const log = await expectWhole(next, { calls: 2, file, sessionId });
  const { requestId } = asked.actions[0]!;
  const requests = log.filter(({ event, type }) => type.startsWith("permission.") && event.includes(requestId));
  expect(requests.map(({ type }) => type)).toEqual(["permission.asked", "permission.answered"]);
  expect(readFileSync(join(cwd, "written.txt"), "utf8")).toBe("once");
  await next.close();
});
