import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Connection } from "../kit/clients/connection.ts";
import { toolCalls } from "../kit/people/fake-user.ts";
import { useWorld } from "../kit/world.ts";

/** Tests prompts of two clients, of one daemon or of two servers, to one session. `strict` allows less than `loose`. */

const world = useWorld({ agent: "stand-in", daemon: "never" });

const STRICT = ["--deny-rules", "Bash(touch *)"];
const REST = { waitMs: 40_000 };

/** Returns a prompt in which Claude Code writes its pid to `processes` and tries to create `name`. */
const deed = (name: string) =>
  toolCalls([`echo $PPID >> processes`, `touch ${name}`].map((command) => ({ name: "Bash", input: { command } })));

function at(cwd: string) {
  const text = () => readFileSync(join(cwd, "processes"), "utf8").trim().split("\n");
  return { made: (name: string) => existsSync(join(cwd, name)), processes: text };
}

type Start = (options: { args?: string[]; env?: Record<string, string> }) => Promise<Pick<Connection, "call">>;
const ofOneDaemon = async (): Promise<Start> => {
  const daemon = await world.daemon();
  return async (options) => daemon.client(options);
};
const ofTwoServers = async (): Promise<Start> => Promise.resolve(async (options) => world.server(options));

it.each([
  ["of two servers", ofTwoServers],
  ["of one daemon", ofOneDaemon],
] as const)(
  "a stricter prompt restarts the process once; two clients %s that take turns cause no further restart",
  async (_, of) => {
    const cwd = world.folder();
    const { made, processes } = at(cwd);
    const start = await of();
    const [loose, strict] = [await start({}), await start({ args: STRICT })];
    const begin = { prompt: deed("first"), cwd, allowedTools: ["Bash"], ...REST };
    const { sessionId } = await loose.call("claude_code", begin);
    for (const [index, client] of [strict, loose, strict].entries()) {
      await client.call("claude_code_reply", { sessionId, prompt: deed(`later-${String(index)}`), ...REST });
    }
    expect(made("first")).toBe(true);
    // The process keeps the policy of its start, also for `loose`.
    expect([0, 1, 2].map((index) => made(`later-${String(index)}`))).toEqual([false, false, false]);
    const [before, ...after] = processes();
    expect(new Set(after)).toEqual(new Set([after[0]]));
    expect(after[0]).not.toBe(before);
    // Nothing of the policy of `strict` reaches a new session of `loose`.
    const { sessionId: own } = await loose.call("claude_code", { ...begin, prompt: deed("own") });
    expect([own === sessionId, made("own")]).toEqual([false, true]);
  },
);

it("a stricter prompt over HTTP cannot steer a running turn; queued, it runs under both policies", async () => {
  const cwd = world.folder();
  const { made, processes } = at(cwd);
  const loose = await world.server();
  const http = await world.http({ args: STRICT });
  const strict: Connection = await http.connect("modern");
  const script = [{ gateBefore: "the end of the turn", text: "Begun." }];
  const begin = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"], waitMs: 0 };
  const { sessionId } = await loose.call("claude_code", begin);
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  const sent = { sessionId, prompt: deed("queued"), waitMs: 0 };
  const refused = await strict.refusal("claude_code_reply", { ...sent, whenBusy: "steer" });
  expect(refused).toMatchObject({
    code: "PERMISSION_DENIED",
    text: expect.stringContaining("whenBusy: queue") as string,
  });
  await strict.call("claude_code_reply", { ...sent, whenBusy: "queue" });
  world.model.release("the end of the turn");
  await strict.end(sessionId);
  expect([made("queued"), processes().length]).toEqual([false, 1]);
  await loose.call("claude_code_reply", { sessionId, prompt: deed("after"), ...REST });
  expect([made("after"), new Set(processes()).size]).toEqual([false, 1]);
});

it("a process starts in the environment of the prompting client, or in the previous environment if that client has another payer", async () => {
  const cwd = world.folder();
  const start = await ofOneDaemon();
  const clientWith = async (env: Record<string, string>) => start({ env, args: ["--idle-process-ms", "1000"] });
  const other = { ANTHROPIC_AUTH_TOKEN: "another way to pay" };
  const [a, b, c] = await Promise.all([{ MARK: "a" }, { MARK: "b" }, { MARK: "c", ...other }].map(clientWith));
  const prompt = toolCalls([{ name: "Bash", input: { command: "echo $MARK >> marks" } }]);
  const { sessionId } = await a!.call("claude_code", { prompt, cwd, allowedTools: ["Bash"], ...REST });
  const reply = async (client: Pick<Connection, "call">) =>
    client.call("claude_code_reply", { sessionId, prompt, ...REST });
  const rest = async () => {
    const isLive = async () =>
      (await a!.call("claude_code_session", { action: "get", sessionId })).sessions[0]?.["processLive"];
    await expect.poll(isLive).toBe(false);
  };
  await reply(b!);
  await rest();
  await reply(b!);
  await rest();
  await reply(c!);
  expect(readFileSync(join(cwd, "marks"), "utf8").trim().split("\n")).toEqual(["a", "a", "b", "b"]);
});
