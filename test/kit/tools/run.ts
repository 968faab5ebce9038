import { expect } from "vitest";
import { runTool as runToolOrAsk, type Tool, type ToolCall, type ToolDeps } from "../../../src/tools/define.ts";
import type { ToolReply } from "../../../src/tools/errors.ts";
import { toolsOf } from "../../../src/tools/toolsets.ts";
import { callOf, depsOf, TOOLSET_SETTINGS, type FakeEngine } from "./fake-engine.ts";

export const tools = new Map(toolsOf(["all"], TOOLSET_SETTINGS).map((tool) => [tool.name, tool]));

interface Event {
  id: number;
  type: string;
  data: { text?: string; result?: string };
}

/** Parts of an answer that tests inspect directly. */
export interface Answer {
  events: Event[];
  actions: object[];
  sessions: object[];
  nextCursor: number;
  truncatedFields?: string[];
  message?: string;
}

/** Runs a call; throws if a form is shown. */
export async function runTool(tool: Tool, args: unknown, call: ToolCall, deps: ToolDeps): Promise<ToolReply> {
  const reply = await runToolOrAsk(tool, args, call, deps);
  if ("needsInput" in reply) throw new Error(`a form was shown: ${JSON.stringify(reply.needsInput)}`);
  return reply;
}

/** Runs the tool `claude_code` + `name`. */
export function run(engine: FakeEngine, name: string, args: object, call: ToolCall = callOf()): Promise<ToolReply> {
  const tool = tools.get(`claude_code${name}`);
  if (!tool) throw new Error(`no tool ${name}`);
  return runTool(tool, args, call, depsOf(engine));
}

export async function runForAnswer(engine: FakeEngine, name: string, args: object, call?: ToolCall): Promise<Answer> {
  const reply = await run(engine, name, args, call);
  expect(reply).toMatchObject({ isError: false, text: JSON.stringify(reply.structured) });
  return reply.structured as unknown as Answer;
}

export const check = (engine: FakeEngine, args: object = {}, call?: ToolCall) =>
  runForAnswer(engine, "_check", { action: "poll", sessionId: "s1", waitMs: 0, ...args }, call);

/** Parts of answers of `claude_code_session` that tests inspect directly. */
export interface SessionList {
  sessions: Record<string, unknown>[];
  nextPageToken?: string;
}

export async function runList(engine: FakeEngine, args: object = {}): Promise<SessionList> {
  return (await runForAnswer(engine, "_session", { action: "list", ...args })) as unknown as SessionList;
}

/** Calls `claude_code_session` on a server whose operator allows sensitive details. */
export async function runWithSensitiveDetails(
  engine: FakeEngine,
  args: object,
  deps: Partial<ToolDeps> = {},
): Promise<ToolReply> {
  const all = { ...depsOf(engine), allows: { sensitiveDetails: true }, ...deps };
  return runTool(tools.get("claude_code_session")!, args, callOf(), all);
}
