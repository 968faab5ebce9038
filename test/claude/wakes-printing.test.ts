import { query } from "@anthropic-ai/claude-agent-sdk";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import { callerHome, ownClaude, promptWith, startPrinting, type CallerHome } from "../kit/clients/calling-claude.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { useWorld } from "../kit/world.ts";

/** `claude -p` and programs on the Agent SDK, which have no tasks: one call is one turn. */

const world = useWorld({ agent: "stand-in", daemon: "auto" });
const homes: CallerHome[] = [];
afterEach(async () => {
  for (const home of homes.splice(0)) await home.close();
});

async function newHome(...args: string[]): Promise<CallerHome> {
  const home = await callerHome(world, { args });
  homes.push(home);
  return home;
}

const OUTER_LIMIT_MS = 120_000;
const start = (script: Parameters<typeof scriptTag>[0]) => ({
  tool: "claude_code",
  input: { prompt: scriptTag(script), cwd: world.folder() },
});

const Text = z.union([
  z.string(),
  z.array(z.looseObject({ text: z.string() })).transform(([first]) => first?.text ?? ""),
]);
const Result = z.looseObject({ type: z.literal("tool_result"), content: Text });
const Message = z.looseObject({ message: z.looseObject({ content: z.array(z.unknown()) }) });
const Told = z.looseObject({
  sessionId: z.string(),
  nextCursor: z.number(),
  status: z.string(),
  actions: z.array(z.looseObject({ requestId: z.string() })).default([]),
  result: z.looseObject({ result: z.string() }).optional(),
});

/** Returns what our tools have told the model, from the messages of Claude Code. */
function toldIn(messages: readonly unknown[]): z.infer<typeof Told>[] {
  const blocks = messages.flatMap((each) => Message.safeParse(each).data?.message.content ?? []);
  const texts = blocks.flatMap((each) => Result.safeParse(each).data?.content ?? []);
  return texts.map((text) => Told.parse(JSON.parse(text)));
}

const linesOf = (output: string) =>
  output
    .split("\n")
    .flatMap((line) => (line.startsWith("{") && line.endsWith("}") ? [JSON.parse(line) as unknown] : []));

const STREAM = ["--output-format", "stream-json", "--verbose"];

describe("a Claude Code without tasks", () => {
  it(
    "claude -p has the results of two turns, one of them failed, with one request for the calls and one for the text",
    async () => {
      const home = await newHome();
      const failing = start([{ error: { status: 400, message: "No such thing.", times: 9 } }]);
      const claude = startPrinting(home, [...STREAM, "--", promptWith(start([{ text: "Inner result." }]), failing)]);
      expect(await claude.exited).toBe(0);
      expect(home.requests()).toHaveLength(2);
      const [done, failed] = toldIn(linesOf(claude.output()));
      expect(done).toMatchObject({ status: "idle", result: { result: "Inner result." } });
      expect(failed).toMatchObject({ status: "error", result: { isError: true } });
    },
    OUTER_LIMIT_MS,
  );

  it(
    "claude -p with stream-json answers a request with one call, which waits for the result",
    async () => {
      // Otherwise Claude Code hands a form to the program that drives it, which shows none here.
      const home = await newHome("--approvals", "caller");
      const claude = startPrinting(home, ["--input-format", "stream-json", ...STREAM]);
      const say = (content: string) =>
        claude.type(`${JSON.stringify({ type: "user", message: { role: "user", content } })}\n`);
      const input = { prompt: toolCalls([writeCall("asked")]), cwd: world.folder() };
      say(promptWith({ tool: "claude_code", input }));
      await home.asks(1);
      const { actions, nextCursor, sessionId } = toldIn(linesOf(claude.output()))[0]!;
      const { requestId } = actions[0]!;
      const answer = { action: "respond_permission", sessionId, requestId, decision: "allow", cursor: nextCursor };
      say(promptWith({ tool: "claude_code_check", input: answer }));
      await claude.shows(/\\"result\\":\\"Over\./);
      await expect.poll(() => home.requests().length).toBe(4);
      await claude.kill();
    },
    OUTER_LIMIT_MS,
  );

  it(
    "a program on the Agent SDK has the result of a turn that outlasts a poll of 20 s, in one call",
    async () => {
      const home = await newHome();
      const { mcpServers } = JSON.parse(home.words[1] ?? "") as { mcpServers: Record<string, never> };
      const prompt = promptWith(start([{ text: "After a while.", gateBefore: "sdk" }]));
      const options = { cwd: home.cwd, env: home.env, mcpServers, allowedTools: ["mcp__agents"] };
      const messages = query({ prompt, options: { ...options, pathToClaudeCodeExecutable: ownClaude() } });
      setTimeout(() => world.model.release("sdk"), 22_000);
      const heard: unknown[] = [];
      for await (const message of messages) heard.push(message);
      expect(home.requests()).toHaveLength(2);
      expect(toldIn(heard)).toMatchObject([{ status: "idle", result: { result: "After a while." } }]);
    },
    OUTER_LIMIT_MS,
  );
});
