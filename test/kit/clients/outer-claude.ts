import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";

import { bundledClaudes } from "../../../src/claude/claude-files.ts";
import { scriptTag } from "../../../src/demo/model/script.ts";
import { startScriptedModel, type ScriptedModel } from "../../../src/demo/model/server.ts";
import { answerIn, type Answer } from "./connection.ts";

/** The real `claude -p` as a client of our server: its model, scripted too, calls our tools as the prompt says. */
export interface OuterClaude {
  /** Sends a prompt that makes the model call `tool`. Throws if the tool answers with an error. */
  call(tool: string, args: object): Promise<Answer>;
  /** Tools offered to the model. */
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

/** Keeps its files in `folder` and shares nothing with Claude Code processes of the server. */
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
      return toAnswer(await readResult(id, lines));
    },
    tools: () => model.requests.at(-1)?.tools ?? [],
    async close() {
      child.stdin.end();
      await exited;
      await model.close();
    },
  };
}

/** Sends the prompt as an argument, as a shell script would: no person is there to be asked. */
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
  const result = await readResult(id, createInterface({ input: child.stdout })[Symbol.asyncIterator]());
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
    // `ENABLE_TOOL_SEARCH` is off so that the model sees all tools at once.
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      ...model.environment(mkdtempSync(join(folder, "config-"))),
      ENABLE_TOOL_SEARCH: "false",
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
}

/** Reads to the end of the turn, then returns the result of tool use `id`. */
async function readResult(id: string, lines: AsyncIterator<string>): Promise<ToolResult> {
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
