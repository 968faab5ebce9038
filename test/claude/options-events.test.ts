import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { hear, ofKind, play } from "../support/one-turn.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const ok = [{ text: "ok" }];
const look = { tools: [{ name: "Bash", input: { command: "ls" } }] };
/** Sends a subagent to play a script, and waits for it. */
const sendAgent = (script: Script) => ({
  tools: [
    {
      name: "Agent",
      input: {
        description: "look",
        subagent_type: "general-purpose",
        prompt: scriptTag(script),
        run_in_background: false,
      },
    },
  ],
});

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
    const agent = sendAgent([{ text: "I look around.", ...look }, { text: "All is quiet." }]);
    const texts = async (options: object) => {
      const answer = await play(server, [agent, ...ok], { cwd: world.folder(), ...options });
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
    const { sessionId } = await play(server, script, options);
    // It comes after the end of the turn.
    expect(await hear(server, sessionId, "promptSuggestion")).toEqual(["yes, run the tests"]);
    const guesses = world.model.requests.filter((request) => request.told.includes("[SUGGESTION MODE"));
    expect([...new Set(guesses.map((request) => request.sessionId))]).toEqual([sessionId]);
  });
});
