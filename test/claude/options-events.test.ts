import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { waitForKind, dataOfKind, runScript } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();
let server: Server;
/** Answers of two sessions with equal scripts; only `open` reports additional events. */
let silent: Answer;
let open: Answer;
beforeAll(async () => {
  server = await world.server();
  const long = "node -e 'console.log(`h`.repeat(20_000))'";
  const hook = (command: string) => [{ hooks: [{ type: "command", command }] }];
  const hooks = { PreToolUse: hook("echo harbour"), PostToolUse: hook(long) };
  writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify({ hooks }));
  const advanced = { includeHookEvents: true, forwardSubagentText: true, promptSuggestions: true };
  const agent = sendAgent([{ text: "I look around.", ...look }, { text: "All is quiet." }]);
  const script = [look, agent, { text: "Shall I run the tests?" }, { text: "yes, run the tests" }];
  silent = await runScript(server, script, { cwd: world.folder() });
  open = await runScript(server, script, { cwd: world.folder(), advanced });
});

const look = { tools: [{ name: "Bash", input: { command: "ls" } }] };
/** Tool call that starts a subagent on a script and waits for its end. */
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
  it("`includeHookEvents` reports the outcome of hooks", () => {
    expect(dataOfKind(silent, "hook")).toEqual([]);
    expect(dataOfKind(open, "hook")).toEqual(
      expect.arrayContaining([
        { name: "PreToolUse:Bash", outcome: "success", exitCode: 0, output: "harbour" },
        { name: "PostToolUse:Bash", outcome: "success", exitCode: 0, output: `${"h".repeat(499)}…` },
      ]),
    );
  });

  it("`forwardSubagentText` reports the text of subagents", () => {
    const texts = ({ events }: Answer) =>
      events
        .filter(({ data }) => typeof data["agentId"] === "string" && "text" in data)
        .map(({ data }) => data["text"]);
    expect(texts(silent)).toEqual([]);
    expect(texts(open)).toEqual(expect.arrayContaining(["I look around.", "All is quiet."]));
  });

  it("`promptSuggestions` reports a guess of the next prompt", async () => {
    // The suggestion comes after the end of the turn.
    expect(await waitForKind(server, open.sessionId, "promptSuggestion")).toEqual(["yes, run the tests"]);
    const guesses = world.model.requests.filter((request) => request.told.includes("[SUGGESTION MODE"));
    expect([...new Set(guesses.map((request) => request.sessionId))]).toEqual([open.sessionId]);
  });
});
