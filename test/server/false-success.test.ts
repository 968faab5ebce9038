import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { requestsOf } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

/** Turns that end with `subtype: "success"` although the work was not done, or only in part. */

const world = useWorld({ daemon: "never" });
const ARGS = ["--toolsets", "agent,query,chat"];
const start = async () => world.server({ args: [...ARGS, "--trust-dir", dirname(world.folder())] });
let server: Server;
beforeAll(async () => {
  server = await start();
});

type Script = Parameters<typeof scriptTag>[0];

/** Creates a folder with a hook for `event` that prints `output`. */
function withHook(event: string, output: object): string {
  const cwd = world.folder();
  mkdirSync(join(cwd, ".claude"));
  const hook = { type: "command", command: `echo '${JSON.stringify(output)}'` };
  writeFileSync(join(cwd, ".claude/settings.json"), JSON.stringify({ hooks: { [event]: [{ hooks: [hook] }] } }));
  return cwd;
}

function withCommand(): string {
  const cwd = withHook("UserPromptExpansion", { decision: "block", reason: "not today" });
  mkdirSync(join(cwd, ".claude/commands"));
  writeFileSync(join(cwd, ".claude/commands/greet.md"), "Say hello.");
  return cwd;
}

const BASH: Script = [{ text: "I run it.", tools: [{ name: "Bash", input: { command: "echo x" } }] }, { text: "Ran." }];
const STOP = { continue: false, stopReason: "enough for today" };
const SCHEMA = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
const outputFormat = { type: "json_schema", schema: SCHEMA };

interface Case {
  readonly cwd?: () => string;
  readonly script?: Script;
  readonly prompt?: string;
  readonly advanced?: object;
}

const CAPPED = { decision: "block", reason: "go on" };
const SILENT: Script = [{ text: "" }, { text: "" }];

const run = async ({ advanced = {}, cwd = () => world.folder(), prompt, script = [{ text: "Hello." }] }: Case) =>
  server.call("claude_code", {
    prompt: prompt ?? `Go. ${scriptTag(script)}`,
    cwd: cwd(),
    allowedTools: ["Bash"],
    advanced,
    waitMs: 40_000,
  });

type Damage = readonly [string, (file: string) => void, object];

const GONE: Damage[] = [
  ["removed", (file) => rmSync(file), {}],
  ["emptied", (file) => writeFileSync(file, ""), {}],
  ["left without a message", (file) => writeFileSync(file, readFileSync(file, "utf8").replace(/\n[^]*$/, "\n")), {}],
  ["removed, in a fork", (file) => rmSync(file), { forkSession: true }],
  ["emptied, in a fork", (file) => writeFileSync(file, ""), { forkSession: true }],
];

function transcriptOf(sessionId: string): string {
  const projects = join(world.configFolder, "projects");
  const files = readdirSync(projects).map((project) => join(projects, project, `${sessionId}.jsonl`));
  return files.find((file) => existsSync(file)) ?? "none";
}

describe("turns that Claude Code reports as a success", () => {
  it.each<[string, string, string, Case]>([
    [
      "when a hook blocks the prompt",
      "prompt_blocked",
      "not today",
      { cwd: () => withHook("UserPromptSubmit", { decision: "block", reason: "not today" }) },
    ],
    [
      "when a hook stops the prompt",
      "hook_stopped",
      "enough for today",
      { cwd: () => withHook("UserPromptSubmit", STOP) },
    ],
    [
      "when a hook stops the turn before a tool",
      "hook_stopped",
      "PreToolUse:Bash: enough for today",
      { cwd: () => withHook("PreToolUse", STOP), script: BASH },
    ],
    [
      "when a hook stops the turn after a tool",
      "hook_stopped",
      "PostToolUse:Bash: enough for today",
      { cwd: () => withHook("PostToolUse", STOP), script: BASH },
    ],
    [
      "when a hook blocks the turn after its tools",
      "hook_stopped",
      "",
      { cwd: () => withHook("PostToolBatch", { decision: "block", reason: "x" }), script: BASH },
    ],
    [
      "when a Stop hook stops the turn",
      "hook_stopped",
      "Hello.\n\nA hook ended the turn: Stop: enough for today.",
      { cwd: () => withHook("Stop", STOP) },
    ],
    ["when /compact fails", "command_failed", "No messages to compact", { prompt: "/compact" }],
    [
      "when a hook blocks the command of the prompt",
      "prompt_blocked",
      "not today",
      { cwd: withCommand, prompt: "/greet" },
    ],
    ["when structured output never comes", "structured_output_missing", "outputFormat", { advanced: { outputFormat } }],
  ])("a turn reported as a success counts as failed %s", async (_, errorSubtype, words, one) => {
    const { result, status } = await run(one);
    expect(status).toBe("error");
    expect(result).toMatchObject({ isError: true, errorSubtype, advice: expect.any(String) });
    expect(result?.result).toContain(words);
    expect(result?.result).not.toContain("Original prompt");
  });
});

describe("warnings about a turn that is done", () => {
  it.each<[string, string, string, Case]>([
    ["a turn without an answer warns of the missing text", "", "Claude answered with no text", { script: SILENT }],
    [
      "a turn with thinking alone warns of the missing text",
      "",
      "Claude answered with no text",
      { script: [{ thinking: "Hm." }] },
    ],
    [
      "a turn that a Stop hook kept from ending warns of the hook, and gives the last text",
      "Done.",
      "blocked the turn from ending",
      { cwd: () => withHook("Stop", CAPPED) },
    ],
  ])("%s", async (_, text, warning, one) => {
    const { result, status } = await run(one);
    expect(status).toBe("idle");
    expect(result).toMatchObject({ isError: false, result: text, warnings: [expect.stringContaining(warning)] });
  });

  it.each(["claude_code_query", "claude_direct_query"])(
    "an answer of %s has the warnings of its turn",
    async (tool) => {
      const { data } = await stream(server, tool, { prompt: scriptTag(SILENT), cwd: world.folder() });
      expect(data).toMatchObject({ status: "done", warnings: [expect.stringContaining("no text")] });
    },
  );

  it.each<[string, Case]>([
    ["a command without output", { prompt: "/clear" }],
    [
      "structured output",
      { advanced: { outputFormat }, script: [{ tools: [{ name: "StructuredOutput", input: { a: "b" } }] }] },
    ],
    ["a text answer", {}],
  ])("a turn that ends with %s has no warnings", async (_, one) => {
    const { result } = await run(one);
    expect(result).toMatchObject({ isError: false });
    expect(result).not.toHaveProperty("warnings");
  });
});

describe("a session whose transcript is gone", () => {
  const sessions: string[] = [];
  let blocked = { cwd: "", sessionId: "" };
  beforeAll(async () => {
    for (let left = GONE.length; left > 0; left -= 1) sessions.push((await run({})).sessionId);
    const cwd = withHook("UserPromptSubmit", { decision: "block", reason: "no" });
    blocked = { cwd, sessionId: (await run({ cwd: () => cwd })).sessionId };
    // Without a restart, a process would continue from memory and not read the transcript.
    await world.closeServers();
    server = await start();
  });

  it.each(GONE)("a reply fails before a request to the model if the transcript is %s", async (_, damage, how) => {
    const sessionId = sessions.pop() ?? "";
    damage(transcriptOf(sessionId));
    const before = world.model.requests.length;
    const reply = { sessionId, prompt: scriptTag([{ text: "Again." }]), waitMs: 40_000, ...how };
    const { result, status } = await server.call("claude_code_reply", reply);
    expect(status).toBe("error");
    const advice = expect.stringContaining("Start a new session");
    expect(result).toMatchObject({ isError: true, errorSubtype: "transcript_missing", advice });
    expect(world.model.requests).toHaveLength(before);
  });

  it("a session goes on if its transcript holds only the refusal of a hook", async () => {
    const { cwd, sessionId } = blocked;
    rmSync(join(cwd, ".claude"), { recursive: true });
    const reply = { sessionId, prompt: scriptTag([{ text: "Now." }]), waitMs: 40_000 };
    expect((await server.call("claude_code_reply", reply)).result).toMatchObject({ isError: false, result: "Now." });
    expect(requestsOf(world, sessionId)).toHaveLength(1);
  });
});
