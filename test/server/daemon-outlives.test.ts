import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { descendantsOf } from "../kit/process-tree.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** Tests turns of the real Claude Code that outlive their client, with every end of a client. */

const world = useWorld();
const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");
const STEPS = 4;

/** Steps with a command that appends to `file`: number of the step, pid and start time of Claude Code. */
const steps = (file: string, count: number, gate?: string) =>
  Array.from({ length: count }, (_, at) => {
    const command = `echo "${String(at)} $PPID $(cut -d ' ' -f 22 /proc/$PPID/stat)" >> ${file}`;
    return {
      tools: [{ name: "Bash", input: { command } }],
      ...(at === 1 && gate !== undefined && { gateBefore: gate }),
    };
  });

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}

/** Writes a client that starts the proxy through a shell, the leader of a process group as signals see a client. */
function programWithGroup(): string {
  const file = join(world.folder(), "client.mjs");
  const args = `["-c", '"$0" "$@"; :', process.execPath, ${JSON.stringify(MAIN)}, ...process.argv.slice(2)]`;
  writeFileSync(
    file,
    `import { spawn } from "node:child_process";\nspawn("/bin/sh", ${args}, { detached: true, stdio: "inherit" });\n`,
  );
  return file;
}

/** Ends of a client. The client of the last entry starts first, so the daemon is started by this client. */
const ENDS: Record<string, (client: Server) => unknown> = {
  "end of input": async (client) => client.close(),
  SIGTERM: ({ pid }) => process.kill(pid, "SIGTERM"),
  SIGKILL: ({ pid }) => process.kill(pid, "SIGKILL"),
  "SIGKILL of its process group": ({ pid }) => process.kill(-leaderBelow(pid), "SIGKILL"),
  "SIGKILL of all its descendants, then of its process group": ({ pid }) => {
    const leader = leaderBelow(pid);
    const below = descendantsOf(leader);
    expect(below.length).toBeGreaterThan(0);
    // Stops the leader, because a shell ends with its last child.
    process.kill(leader, "SIGSTOP");
    for (const each of [...below, -leader]) process.kill(each, "SIGKILL");
  },
};

function leaderBelow(pid: number): number {
  const [leader] = descendantsOf(pid);
  if (leader === undefined) throw new Error("the client has no group");
  return leader;
}

/** Leaves out progress events, because their number depends on the time taken. */
const typesOf = ({ events }: Answer) => events.map(({ type }) => type).filter((type) => type !== "progress");

/** Runs an equal turn with a client that stays to the end. */
async function runToTheEnd(client: Server): Promise<Answer> {
  const cwd = world.folder();
  const prompt = scriptTag([...steps(join(cwd, "ran.txt"), STEPS), { text: "done" }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd });
  return client.end(sessionId, 1);
}

it(
  `a turn goes on in the same process when its client ends by ${Object.keys(ENDS).join("; ")}`,
  { timeout: 180_000 },
  async () => {
    const args = ["--allow-rules", "Bash"];
    const home = join(world.configFolder, "..");
    const begun: { cwd: string; file: string; first: Server; how: string; sessionId: string }[] = [];
    for (const how of Object.keys(ENDS).toReversed()) {
      const main = how.includes("group") ? programWithGroup() : MAIN;
      const first = await world.shared({ args, main });
      const cwd = world.folder();
      const file = join(cwd, "ran.txt");
      const prompt = scriptTag([...steps(file, STEPS, "the clients have left"), { text: "done" }]);
      const { sessionId } = await first.call("claude_code", { prompt, cwd });
      begun.push({ cwd, file, first, how, sessionId });
    }
    const [daemon] = world.daemons();
    const next = await world.shared({ args });
    for (const { file, first, how } of begun) {
      await expect.poll(() => readLines(file)).toHaveLength(1);
      await ENDS[how]?.(first);
      await first.gone;
    }
    world.model.release("the clients have left");

    const stayed = await runToTheEnd(next);
    for (const { cwd, file, how, sessionId } of begun) {
      const ended = await next.end(sessionId, 1);
      expect([how, ended.status, ended.result?.result, ended.result?.isError]).toEqual([how, "idle", "done", false]);
      // The next client gets the events of a client that stayed. Events hidden from clients are numbered, too.
      expect([how, ...typesOf(ended)]).toEqual([how, ...typesOf(stayed)]);
      const log = await storedEvents(home, sessionId);
      expect(log.map(({ id }) => id)).toEqual(log.map((_, at) => at + 1));
      const stored = new Set(log.map(({ id }) => id));
      expect(ended.events.filter(({ id }) => !stored.has(id))).toEqual([]);
      const again = scriptTag([...steps(file, 1), { text: `again in ${cwd}` }]);
      const reply = await next.call("claude_code_reply", { sessionId, prompt: again, waitMs: 40_000 });
      expect(reply).toMatchObject({ status: "idle", result: { result: `again in ${cwd}` } });
      const ran = readLines(file).map((line) => line.split(" "));
      expect(ran.map(([at]) => at)).toEqual(["0", "1", "2", "3", "0"]);
      const processes = new Set(ran.map(([, pid, startedAt]) => `${String(pid)} ${String(startedAt)}`));
      expect([...processes]).toEqual([expect.stringMatching(/^\d+ \d+$/)]);
    }
    expect(world.daemons()).toEqual([daemon]);
  },
);
