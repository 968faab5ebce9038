/** Runs the real Claude Code against the scripted model, through the Agent SDK alone. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { query, type SDKMessage, type SDKUserMessage } from "@anthropic-ai/claude-agent-sdk";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../src/demo/model/server.ts";
import { SHORT_LIVED } from "../kit/world.ts";

let model: ScriptedModel;
beforeAll(async () => {
  model = await startScriptedModel();
});
afterAll(async () => model.close());

/** Shared by all tests, which begin and end while `claude` is idle; `onTool` is called for each permission request. */
let claude: Claude;
let onTool: () => Promise<void> = async () => Promise.resolve();
beforeAll(async () => {
  claude = await startClaude(async () => onTool());
});
afterAll(async () => claude.close());

interface Claude {
  readonly cwd: string;
  /** Resolves when the SDK has taken the prompt. */
  say(text: string): Promise<void>;
  /** Reads until `session_state_changed` to idle; resolves with all results. */
  idle(): Promise<readonly string[]>;
  /** All messages read so far. */
  readonly messages: readonly SDKMessage[];
  /** Ends Claude Code and deletes its folder. */
  close(): Promise<void>;
}

/** Starts a Claude Code in a new folder; `asked` is called for each permission request. */
async function startClaude(asked = async () => Promise.resolve()): Promise<Claude> {
  const home = await mkdtemp(join(tmpdir(), "scripted-claude-"));
  const prompts = new TransformStream<SDKUserMessage, SDKUserMessage>();
  const writer = prompts.writable.getWriter();
  const running = query({
    prompt: prompts.readable,
    options: {
      cwd: home,
      env: {
        PATH: process.env["PATH"],
        CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "1",
        ...model.environment(join(home, ".claude-config")),
        ...SHORT_LIVED,
      },
      settingSources: [],
      canUseTool: async (_tool, input) => {
        await asked();
        return { behavior: "allow", updatedInput: input };
      },
    },
  });
  const messages: SDKMessage[] = [];
  return {
    cwd: home,
    messages,
    say: async (content) =>
      writer.write({ type: "user", message: { role: "user", content }, parent_tool_use_id: null }),
    async idle() {
      const results: string[] = [];
      for (;;) {
        const next = await running.next();
        if (next.done) throw new Error("Claude Code ended");
        const message = next.value;
        messages.push(message);
        if (message.type === "result") results.push("result" in message ? message.result : message.subtype);
        if (message.type === "system" && message.subtype === "session_state_changed" && message.state === "idle")
          return results;
      }
    },
    async close() {
      running.close();
      await rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

const bash = (command: string) => ({ name: "Bash", input: { command, description: "a step" } });

it("a script in a prompt plays entry by entry over the next prompts, and after the last entry the model says Done.", async () => {
  await claude.say(`Greet. ${scriptTag([{ thinking: "A greeting.", text: ["Hello, ", "world 😀"] }])}`);
  expect(await claude.idle()).toEqual(["Hello, world 😀"]);
  await claude.say(scriptTag([{ text: "Again." }, { text: "And on." }]));
  expect(await claude.idle()).toEqual(["Again."]);
  await claude.say("Go on.");
  expect(await claude.idle()).toEqual(["And on."]);
  await claude.say("Go on.");
  expect(await claude.idle()).toEqual(["Done."]);
});

it("a tool turn runs the tool, and the next entry answers its result", async () => {
  const input = { file_path: join(claude.cwd, "note.txt"), content: "written by a script\n" };
  await claude.say(scriptTag([{ text: "I write.", tools: [{ name: "Write", input }] }, { text: "Written." }]));
  expect(await claude.idle()).toEqual(["Written."]);
  expect(await readFile(input.file_path, "utf8")).toBe(input.content);
});

it("a background agent plays the script in the prompt of the agent", async () => {
  const own = scriptTag([{ tools: [bash("echo from the agent")] }, { text: "Agent's report." }]);
  const input = { description: "a task", prompt: `Do it. ${own}`, subagent_type: "general-purpose" };
  await claude.say(scriptTag([{ tools: [{ name: "Agent", input }] }, { text: "Launched." }, { text: "It reported." }]));
  expect(await claude.idle()).toEqual(["Launched.", "It reported."]);
  const [request] = model.requests.filter(({ subagent, lastUserText }) => subagent && lastUserText.includes("Do it."));
  expect(request).toMatchObject({
    served: { entry: 0 },
    agentId: expect.any(String),
    tools: expect.arrayContaining(["Bash"]),
  });
  expect(request?.sessionId).toBe(claude.messages.find(({ type }) => type === "result")?.session_id);
  expect(model.requests.at(-1)?.lastUserText).toContain("Agent's report.");
});

it("an overloaded API is retried until it answers", async () => {
  await claude.say(scriptTag([{ error: { status: 529 }, times: 2, text: "At last." }]));
  expect(await claude.idle()).toEqual(["At last."]);
  const retries = claude.messages.flatMap((message) =>
    message.type === "system" && message.subtype === "api_retry" ? [message.error_status] : [],
  );
  expect(retries).toEqual([529, 529]);
});

it("cut and garbled streams are recovered, and add no answer", async () => {
  const faults: Script = [
    { text: ["to be ", "cut"], cut: true },
    { text: ["to be ", "garbled"], malformed: true },
  ];
  await claude.say(scriptTag([{ tools: [bash("true")] }, ...faults]));
  expect(await claude.idle()).toEqual(["to be cut"]);
  await claude.say("Go on.");
  expect(await claude.idle()).toEqual(["to be garbled"]);
});

it("an API error without a retry becomes the result, and so does an invalid script", async () => {
  await claude.say(scriptTag([{ error: { status: 403, message: "Not for you" } }]));
  expect(await claude.idle()).toEqual([expect.stringContaining("403 Not for you")]);
  await claude.say('<model-script>[{ "txt": "a" }]</model-script>');
  expect(await claude.idle()).toEqual([expect.stringContaining('Unrecognized key: "txt"')]);
});

it("a message sent during a tool use replaces the running script by its own", async () => {
  onTool = async () => claude.say(scriptTag([{ text: "Steered." }]));
  await claude.say(scriptTag([{ tools: [bash("touch a-file")] }, { text: "Not steered." }]));
  expect((await claude.idle()).at(-1)).toBe("Steered.");
  onTool = async () => Promise.resolve();
});

it("two concurrent sessions play their own scripts, and each waits at its own gates", async () => {
  const names = ["left", "right"];
  const other = await startClaude();
  onTestFinished(async () => other.close());
  const claudes = [claude, other];
  for (const [i, each] of claudes.entries()) {
    const name = names[i] ?? "";
    await each.say(
      scriptTag([
        { gateBefore: name, tools: [bash(`echo ${name}`)] },
        { gate: `${name} end`, text: name },
      ]),
    );
  }
  const idle = claudes.map(async (each) => each.idle());
  const seen = names.map(async (name) =>
    model.waitForRequest(({ lastUserText }) => lastUserText.includes(`echo ${name}`)),
  );
  const sessions = (await Promise.all(seen)).map(({ sessionId }) => sessionId);
  expect(new Set(sessions).size).toBe(2);
  for (const gate of ["right", "left", "right end", "left end"]) model.release(gate);
  expect(await Promise.all(idle)).toEqual([["left"], ["right"]]);
});
