import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";

import { bundledClaudes } from "../../../src/claude/binary.ts";
import { scriptTag } from "../../../src/demo/model/script.ts";
import { startScriptedModel, type ScriptedModel } from "../../../src/demo/model/server.ts";
import { answerIn, type Answer } from "./connection.ts";

/** The real `claude -p` as a client of ours: its own model, scripted too, calls our tools as its prompt says. */
export interface OuterClaude {
  /** One prompt, at which its model calls the tool. Throws when the tool answers with an error. */
  call(tool: string, args: object): Promise<Answer>;
  /** The tools that its model was offered. */
  tools(): readonly string[];
  close(): Promise<void>;
}

const SERVER = "agents";

const Line = z.looseObject({
  type: z.string(),
  message: z.looseObject({ content: z.unknown() }).optional(),
});
const ToolResult = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  is_error: z.boolean().nullish(),
  content: z.union([z.string(), z.array(z.looseObject({ text: z.string() }))]),
});
type ToolResult = z.infer<typeof ToolResult>;

/** `folder` is for its files: nothing in it is shared with the Claude Codes that the server runs. */
export async function startOuterClaude(
  folder: string,
  { token, url }: { url: string; token: string },
): Promise<OuterClaude> {
  const model = await startScriptedModel();
  const child = run(["--input-format", "stream-json"], folder, { token, url, model });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = once(child, "exit");
  let calls = 0;
  return {
    async call(tool, args) {
      const id = `toolu_outer_${String((calls += 1))}`;
      const script = [{ tools: [{ id, name: `mcp__${SERVER}__${tool}`, input: { ...args } }] }, { text: "Told." }];
      const message = { role: "user", content: scriptTag(script) };
      child.stdin.write(`${JSON.stringify({ type: "user", message })}\n`);
      return toAnswer(await resultOf(id, lines));
    },
    tools: () => model.requests.at(-1)?.tools ?? [],
    async close() {
      child.stdin.end();
      await exited;
      await model.close();
    },
  };
}

/** One prompt that is its argument, as in a script: no person is there to be asked anything. */
export async function callOnce(
  folder: string,
  server: { url: string; token: string },
  tool: string,
  args: object,
): Promise<Answer> {
  const model = await startScriptedModel();
  const id = "toolu_once";
  const script = [{ tools: [{ id, name: `mcp__${SERVER}__${tool}`, input: { ...args } }] }, { text: "Told." }];
  const child = run([scriptTag(script)], folder, { ...server, model });
  child.stdin.end();
  const exited = once(child, "exit");
  const result = await resultOf(id, createInterface({ input: child.stdout })[Symbol.asyncIterator]());
  await exited;
  await model.close();
  return toAnswer(result);
}

function run(
  args: string[],
  folder: string,
  { model, token, url }: { url: string; token: string; model: ScriptedModel },
) {
  const mcpServers = { [SERVER]: { type: "http", url, headers: { Authorization: `Bearer ${token}` } } };
  const stream = ["--output-format", "stream-json", "--verbose"];
  const ours = ["--mcp-config", JSON.stringify({ mcpServers }), "--strict-mcp-config", "--allowedTools"];
  const claude = bundledClaudes()[0] ?? "claude";
  return spawn(claude, ["-p", ...args, ...stream, ...ours, `mcp__${SERVER}`], {
    cwd: mkdtempSync(join(folder, "cwd-")),
    // Its model is shown all tools at once, without a search.
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      ...model.environment(mkdtempSync(join(folder, "config-"))),
      ENABLE_TOOL_SEARCH: "false",
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
}

/** Reads on to the end of the prompt. */
async function resultOf(id: string, lines: AsyncIterator<string>): Promise<ToolResult> {
  let found: ToolResult | undefined;
  for (;;) {
    const next = await lines.next();
    if (next.done) throw new Error("Claude Code has ended");
    const { message, type } = Line.parse(JSON.parse(next.value));
    const blocks = Array.isArray(message?.content) ? (message.content as unknown[]) : [];
    found ??= blocks.flatMap((each) => ToolResult.safeParse(each).data ?? []).find((each) => each.tool_use_id === id);
    if (type !== "result") continue;
    if (!found) throw new Error(`the tool was not called: ${next.value}`);
    return found;
  }
}

function toAnswer({ content, is_error: isError }: ToolResult): Answer {
  const text = typeof content === "string" ? content : (content[0]?.text ?? "");
  if (isError) throw new Error(text);
  return answerIn(text);
}
