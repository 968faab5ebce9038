import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { scriptTag, type Script } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { initialize, line } from "../kit/clients/opening-lines.ts";
import { useWorld } from "../kit/world.ts";

/** Tests `printf … | claude-agents-mcp`: a client sends everything at once, ends its input, and reads. */

const world = useWorld({ agent: "stand-in" });

interface Answer {
  id?: unknown;
  result?: { structuredContent?: { sessionId?: string; status?: string; result?: object } };
}

const SERVERS: [string, () => Record<string, string>][] = [
  ["through a daemon", () => ({})],
  ["by a server of its own", () => ({ CLAUDE_CODE_MCP_DAEMON: "off" })],
  [
    "by a server of its own, because no daemon starts",
    () => ({ HOME: world.folder(), ...constants({ daemonStartMs: 1 }) }),
  ],
];

/** Zero, because some turns are left running. */
const SETTINGS = { drainMs: 0 };

function startServer(env: () => Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, ["dist/cli/main.js", "serve", ...args], {
    env: { PATH: process.env["PATH"], ...world.environment, ...world.settings(SETTINGS), ...env() },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const answers: Answer[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (text) => answers.push(JSON.parse(text) as Answer));
  return {
    child,
    answers,
    exited: once(child, "exit"),
    waitForMessage: async (method: string) => {
      while (!answers.some((message) => "method" in message && message.method === method)) await once(lines, "line");
    },
  };
}

const start = (script: Script, more: object = {}) => {
  const params = { prompt: scriptTag(script), cwd: world.folder(), waitMs: 40_000, ...more };
  return line({ id: "start", method: "tools/call", params: { name: "claude_code", arguments: params } });
};
const openWith = (call: string, capabilities: object = {}) =>
  [initialize({ capabilities }), line({ method: "notifications/initialized" }), call].join("\n");

describe("the end of input", () => {
  it.each(SERVERS)(
    "each call is answered in its own time after the end of input, and the exit code is 0: %s",
    async (_, env) => {
      const { answers, child, exited } = startServer(env);
      child.stdin.end(openWith(start([{ text: "done" }])));
      expect(await exited).toEqual([0, null]);
      expect(answers.map(({ id }) => id)).toEqual([0, "start"]);
      expect(answers[1]?.result?.structuredContent).toMatchObject({ status: "idle", result: { result: "done" } });
    },
  );

  it("work begun through a daemon goes on after the end of input", async () => {
    const { answers, child, exited } = startServer(() => ({}));
    child.stdin.end(openWith(start([{ text: "later", gateBefore: "later" }], { waitMs: 0 })));
    expect(await exited).toEqual([0, null]);
    const { sessionId = "", status } = answers[1]?.result?.structuredContent ?? {};
    expect(status).toBe("running");
    world.model.release("later");
    const next = await world.shared({ settings: SETTINGS });
    expect(await next.end(sessionId)).toMatchObject({ result: { result: "later", isError: false } });
  });

  const asks: Script = [{ tools: [{ name: "Bash", input: { command: "touch x.txt" } }] }, { text: "asked" }];
  it.each(SERVERS.slice(0, 2))(
    "an open form is withdrawn at the end of input, and the caller is asked: %s",
    async (_, env) => {
      const { answers, child, exited, waitForMessage } = startServer(env, "--approvals", "user,caller");
      child.stdin.write(`${openWith(start(asks), { elicitation: {} })}\n`);
      await waitForMessage("elicitation/create");
      child.stdin.end();
      expect(await exited).toEqual([0, null]);
      const answer = answers.find(({ id }) => id === "start")?.result?.structuredContent;
      expect(answer).toMatchObject({ status: "waiting_permission" });
    },
  );

  it.each(SERVERS.slice(0, 2))(
    "after the end of input, a signal or a closed stdout ends the server at once: %s",
    async (_, env) => {
      const call = () => openWith(start([{ text: "never", gateBefore: "never" }]));
      const [signalled, unread] = [startServer(env), startServer(env)];
      for (const { child } of [signalled, unread]) {
        child.stdin.end(call());
        await once(child.stdout, "data");
      }
      signalled.child.kill("SIGTERM");
      unread.child.stdout.destroy();
      expect(await Promise.all([signalled.exited, unread.exited])).toEqual([
        [0, null],
        [0, null],
      ]);
    },
  );
});
