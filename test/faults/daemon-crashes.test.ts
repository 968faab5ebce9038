import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { daemonStatus, homeOf, persistently, wholeLog } from "../kit/faults/shims.ts";
import { preloading } from "../kit/servers/preload.ts";
import { useWorld } from "../kit/world.ts";

/** A daemon that crashes hands its turns over like a killed daemon. */

const world = useWorld({ agent: "stand-in" });
const KILLER = join(import.meta.dirname, "../kit/faults/kill-daemon.mjs");

it.each([
  ["process.exit", "exit", "after answer", /killed without an error/],
  ["an uncaught exception", "exception", "before permission", /a fault of this test/],
  ["a lack of memory", "memory", "before answer", /killed without an error/],
])("a turn is whole when %s ends its daemon (%s, %s)", async (_, way, point, why) => {
  const cwd = world.folder();
  const [mark, file] = [join(cwd, "killed"), join(cwd, "ran.txt")];
  const limit = way === "memory" ? ["--max-old-space-size=64"] : [];
  const node = [...limit, preloading(KILLER, { KILL_MARK: mark, KILL_POINTS: point, KILL_WAY: way })];
  const client = await world.shared({ node });
  const step = (at: number) => ({
    tools: [{ name: "Bash", input: { command: `echo ${String(at)} $PPID >> ${file}` } }],
  });
  const prompt = scriptTag([step(0), step(1), { text: "done" }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd });
  for (;;) {
    const { actions, status } = await persistently(async () => client.news(sessionId));
    if (status !== "running" && actions.length === 0) break;
    for (const { requestId } of actions) {
      const answer = { action: "respond_permission", sessionId, requestId, decision: "allow" };
      await client.call("claude_code_check", answer).catch((error: unknown) => {
        // The death of the daemon may have hit the answer, or the reply to the answer.
        if (!/has ended|REQUEST/.test(String(error))) throw error;
      });
    }
  }
  expect(readFileSync(mark, "utf8")).toBe("x");
  const ran = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(" "));
  expect(ran.map(([at]) => at)).toEqual(["0", "1"]);
  expect(ran[0]![1]).toBe(ran[1]![1]);
  const log = await wholeLog(homeOf(world), sessionId);
  const count = (name: string) => log.filter(({ event, type }) => `${type} ${event}`.includes(name)).length;
  const names = ["turn.started", "turn.ended", "permission.asked", "permission.answered", "owner.changed"];
  expect(names.map((name) => count(name))).toEqual([1, 1, 2, 2, 1]);
  expect((await client.end(sessionId, 1)).result?.result).toBe("done");
  const [daemon] = world.daemons();
  const status = daemonStatus(homeOf(world)).find(({ pid }) => pid === daemon);
  expect(status?.lastDeath?.why).toMatch(why);
  await client.close();
  await world.closeServers();
});
