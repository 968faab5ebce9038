import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { play, told } from "./one-turn.ts";
import type { Answer, Server } from "./server.ts";
import { createWorld, type World } from "./world.ts";

let world: World;
let server: Server;
beforeAll(async () => {
  world = await createWorld();
  server = await world.server();
});
afterAll(async () => world.close());

const ok = [{ text: "ok" }];
const look = { tools: [{ name: "Bash", input: { command: "ls" } }] };
/** A subagent that speaks and calls a tool. */
const sendAgent = {
  tools: [
    {
      name: "Agent",
      input: {
        description: "look",
        subagent_type: "general-purpose",
        prompt: scriptTag([{ text: "I look around.", ...look }, { text: "All is quiet." }]),
        run_in_background: false,
      },
    },
  ],
};

const ofKind = ({ events }: Answer, kind: string) => events.flatMap(({ data }) => (kind in data ? [data[kind]] : []));

describe("an option of `claude_code` that asks for more events", () => {
  it("tells what hooks came to: `includeHookEvents`", async () => {
    const long = "node -e 'console.log(`h`.repeat(20_000))'";
    const hook = (command: string) => [{ hooks: [{ type: "command", command }] }];
    const hooks = { PreToolUse: hook("echo harbour"), PostToolUse: hook(long) };
    writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify({ hooks }));
    const run = async (options: object) => play(server, [look, ...ok], { cwd: world.folder(), ...options });
    expect(ofKind(await run({}), "hook")).toEqual([]);
    const asked = ofKind(await run({ advanced: { includeHookEvents: true } }), "hook");
    expect(asked).toEqual(
      expect.arrayContaining([
        { name: "PreToolUse:Bash", outcome: "success", exitCode: 0, output: "harbour" },
        { name: "PostToolUse:Bash", outcome: "success", exitCode: 0, output: `${"h".repeat(499)}…` },
      ]),
    );
    writeFileSync(join(world.configFolder, "settings.json"), "{}");
  });

  it("tells what subagents say: `forwardSubagentText`", async () => {
    const texts = async (options: object) => {
      const answer = await play(server, [sendAgent, ...ok], { cwd: world.folder(), ...options });
      const spoken = answer.events.filter(({ data }) => typeof data["agentId"] === "string" && "text" in data);
      return spoken.map(({ data }) => data["text"]);
    };
    expect(await texts({})).toEqual([]);
    const heard = await texts({ advanced: { forwardSubagentText: true } });
    expect(heard).toEqual(expect.arrayContaining(["I look around.", "All is quiet."]));
  });

  it("guesses the next prompt: `promptSuggestions`", async () => {
    const script = [look, { text: "Shall I run the tests?" }, { text: "yes, run the tests" }];
    const options = { cwd: world.folder(), advanced: { promptSuggestions: true } };
    const { sessionId, nextCursor } = await play(server, script, options);
    // It comes after the end of the turn.
    await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      cursor: nextCursor,
      until: "event",
      waitMs: 20_000,
    });
    expect(ofKind(await told(server, sessionId), "promptSuggestion")).toEqual(["yes, run the tests"]);
    const guesses = world.model.requests.filter((request) => request.told.includes("[SUGGESTION MODE"));
    expect([...new Set(guesses.map((request) => request.sessionId))]).toEqual([sessionId]);
  });

  // A summary takes half a minute of work to come, which no test should wait for: that they are switched on is in
  // Claude Code's debug log, and what becomes of one is in test/unit/claude-asides.test.ts.
  it("summarizes what subagents are at: `agentProgressSummaries`", async () => {
    const log = async (options: object) => {
      const file = join(world.folder(), "debug.log");
      await play(server, [sendAgent, ...ok], { cwd: world.folder(), advanced: { debugFile: file, ...options } });
      return readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line.includes("[AgentSummary]"));
    };
    expect(await log({})).toEqual([]);
    expect((await log({ agentProgressSummaries: true })).length).toBeGreaterThan(0);
  });
});
