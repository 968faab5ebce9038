import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import { statusOf } from "../../domain/session.ts";
import type { SessionRecord } from "../../engine/ports.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { inUsd } from "../present/result.ts";
import { SessionId } from "../prompt.ts";

const LISTED = 50;

/** What there is, and the end of it. Nothing here tells what a session is about: prompts and folders may be private. */
export const claudeCodeSession = defineTool({
  name: "claude_code_session",
  title: "Claude Code sessions",
  description: "List sessions (newest first), get one, or cancel one for good. To stop waiting is no reason to cancel.",
  input: z.strictObject({
    action: z.enum(["list", "get", "cancel"]),
    sessionId: SessionId.exactOptional().describe("for get and cancel"),
  }),
  output: z.looseObject({
    sessions: z.array(z.looseObject({})).optional(),
    message: z.string().optional(),
  }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async handle({ action, sessionId }, call, deps) {
    if (action === "list") return { answer: await list(call, deps) };
    if (sessionId === undefined) throw invalidArgument("sessionId", `is required for action ${action}.`);
    const cancelled = action === "cancel" ? await cancel(sessionId, call, deps) : {};
    const record = await deps.engine.get(call.principal, sessionId);
    return { answer: { sessions: [present(record)], ...cancelled } };
  },
});

async function list({ principal }: ToolCall, { engine }: ToolDeps): Promise<JsonObject> {
  const records = await engine.list({ principal, limit: LISTED });
  const sessions = records.map(present);
  return records.length < LISTED ? { sessions } : { sessions, message: `The newest ${String(LISTED)} are listed.` };
}

async function cancel(sessionId: string, { principal }: ToolCall, { engine }: ToolDeps): Promise<JsonObject> {
  const { state } = await engine.get(principal, sessionId);
  if (state.closed) return { message: `Session ${sessionId} was already ${state.closed.reason}.` };
  await engine.cancel(principal, sessionId, { by: "caller", reason: "cancelled by caller" });
  return { message: `Session ${sessionId} is cancelled and takes no more prompts.` };
}

function present({ id, spec, state, createdAt, updatedAt }: SessionRecord): JsonObject {
  const model = state.reported.model ?? spec.model;
  return {
    sessionId: id,
    status: statusOf(state),
    createdAt: new Date(createdAt).toISOString(),
    lastActiveAt: new Date(updatedAt).toISOString(),
    ...(model !== undefined && { model }),
    permissionMode: state.reported.permissionMode ?? spec.permissionMode ?? "default",
    totalTurns: state.totals.turns,
    totalCostUsd: inUsd(state.totals.costUsd),
    ...(state.lastOutcome && { lastOutcome: state.lastOutcome }),
    pending: state.asks.length,
    processStarts: state.processCount,
    processLive: state.process.phase === "starting" || state.process.phase === "live",
  };
}
