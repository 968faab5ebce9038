import { randomUUID } from "node:crypto";

import { http, mcp, page, tool, type Drive } from "./drives.ts";

/** Every way to perform an action on a session, on every interface. */

/** Session, folder and ids on which `drive` performs the action. */
export interface Target {
  readonly sessionId: string;
  readonly cwd: string;
  readonly requestId: string;
  readonly taskId: string;
  readonly promptId: string;
}

export interface Way {
  readonly action: string;
  /** Tool with `action`, HTTP route, or method of MCP. */
  readonly way: string;
  readonly drive: (target: Target) => Drive;
  /** Default: a session shared by all such ways; it has had a turn and accepts prompts. */
  readonly on?: "asking" | "task" | "own";
  /** Outcome for a caller with the scope. Default: "ok"; otherwise the code for the missing target. */
  readonly comesTo?: string;
}

export const PROMPT = "Say what is true.";

/** Builds the way to an action of `claude_code_session`. */
export const toolWay = (action: string, more: object = {}, comesTo = "ok"): Way => ({
  action,
  way: `claude_code_session ${action}`,
  drive: ({ sessionId }) => tool("claude_code_session", { action, sessionId, ...more }),
  comesTo,
});

type BodyOf = (target: Target) => object;

/** Builds the way to a command of the page. */
export const pageWay = (action: string, body: BodyOf = () => ({}), comesTo = "ok"): Way => {
  const path = action.replaceAll("_", "-");
  return {
    action,
    way: `POST /sessions/:id/${path}`,
    drive: (target) => page("POST", `/sessions/${target.sessionId}/${path}`, body(target)),
    comesTo,
  };
};

export const INVALID_ARGUMENT = "INVALID_ARGUMENT";

export const WAYS: readonly Way[] = [
  { action: "start", way: "claude_code", drive: ({ cwd }) => tool("claude_code", { prompt: PROMPT, cwd }) },
  { action: "start", way: "claude_code_query", drive: ({ cwd }) => tool("claude_code_query", { prompt: PROMPT, cwd }) },
  {
    action: "start",
    way: "claude_direct_query",
    drive: ({ cwd }) => tool("claude_direct_query", { prompt: PROMPT, cwd }),
  },
  { action: "start", way: "POST /sessions", drive: ({ cwd }) => page("POST", "/sessions", { prompt: PROMPT, cwd }) },
  { action: "create", way: "claude_session_create", drive: ({ cwd }) => tool("claude_session_create", { cwd }) },
  {
    action: "reply",
    way: "claude_code_reply",
    on: "own",
    drive: ({ sessionId }) => tool("claude_code_reply", { sessionId, prompt: PROMPT }),
  },
  {
    action: "reply",
    way: "claude_chat_query",
    on: "own",
    drive: ({ sessionId }) => tool("claude_chat_query", { sessionId, prompt: PROMPT }),
  },
  { ...pageWay("reply", () => ({ prompt: PROMPT })), on: "own" },
  {
    action: "fork",
    way: "claude_code_reply",
    drive: ({ sessionId }) => tool("claude_code_reply", { sessionId, prompt: PROMPT, forkSession: true }),
  },
  {
    action: "adopt",
    way: "claude_code_reply",
    drive: () => tool("claude_code_reply", { sessionId: randomUUID(), prompt: PROMPT }),
    // Claude Code has no session with a random id.
    comesTo: "SESSION_NOT_FOUND",
  },
  { action: "list", way: "claude_code_session list", drive: () => tool("claude_code_session", { action: "list" }) },
  { action: "list", way: "GET /sessions", drive: () => page("GET", "/sessions") },
  toolWay("get"),
  { action: "get", way: "GET /sessions/:id", drive: ({ sessionId }) => page("GET", `/sessions/${sessionId}`) },
  {
    action: "get",
    way: "claude-code://sessions/{id}",
    drive: ({ sessionId }) => mcp("resources/read", { uri: `claude-code://sessions/${sessionId}` }),
  },
  {
    action: "events",
    way: "claude_code_check poll",
    drive: ({ sessionId }) => tool("claude_code_check", { action: "poll", sessionId, waitMs: 0 }),
  },
  { action: "events", way: "GET events", drive: ({ sessionId }) => page("GET", `/sessions/${sessionId}/events`) },
  { action: "events", way: "GET event", drive: ({ sessionId }) => page("GET", `/sessions/${sessionId}/events/1`) },
  {
    action: "events",
    way: "claude-code://sessions/{id}/events",
    drive: ({ sessionId }) => mcp("resources/read", { uri: `claude-code://sessions/${sessionId}/events` }),
  },
  { action: "events", way: "tasks/get", on: "task", drive: ({ taskId }) => mcp("tasks/get", { taskId }) },
  toolWay("diff"),
  toolWay("receipt"),
  { ...toolWay("verify", { commands: ["true"] }), on: "own" },
  toolWay("continue", {}, INVALID_ARGUMENT),
  pageWay("continue", () => ({}), INVALID_ARGUMENT),
  toolWay("interrupt"),
  {
    action: "interrupt",
    way: "claude_chat_interrupt",
    drive: ({ sessionId }) => tool("claude_chat_interrupt", { sessionId }),
  },
  pageWay("interrupt"),
  {
    action: "interrupt_prompt",
    way: "tasks/cancel",
    on: "task",
    drive: ({ taskId }) => mcp("tasks/cancel", { taskId }),
  },
  { ...toolWay("cancel"), on: "own" },
  { ...pageWay("cancel", () => ({ reason: "no more" })), on: "own" },
  { ...toolWay("close"), on: "own" },
  {
    action: "close",
    way: "claude_session_close",
    on: "own",
    drive: ({ sessionId }) => tool("claude_session_close", { sessionId }),
  },
  { ...toolWay("delete"), on: "own" },
  { ...pageWay("delete"), on: "own" },
  toolWay("rename", { title: "t" }),
  pageWay("rename", () => ({ title: "t" })),
  toolWay("pack"),
  toolWay("release_queue"),
  pageWay("release_queue"),
  toolWay("drop_queue"),
  pageWay("drop_queue"),
  toolWay("set_model", { model: "opus" }),
  {
    action: "set_model",
    way: "claude_chat_model",
    drive: ({ sessionId }) => tool("claude_chat_model", { sessionId, model: "opus" }),
  },
  toolWay("set_permission_mode", { permissionMode: "plan" }),
  {
    action: "set_permission_mode",
    way: "claude_chat_mode",
    drive: ({ sessionId }) => tool("claude_chat_mode", { sessionId, permissionMode: "plan" }),
  },
  toolWay("stop_task", { taskId: "none" }, INVALID_ARGUMENT),
  toolWay("task_output", { taskId: "none" }, INVALID_ARGUMENT),
  toolWay("usage"),
  toolWay("rewind", { dryRun: true }),
  pageWay("rewind", ({ promptId }) => ({ promptId, dryRun: true })),
  {
    action: "answer",
    way: "claude_code_check respond_permission",
    on: "asking",
    drive: ({ requestId, sessionId }) =>
      tool("claude_code_check", { action: "respond_permission", sessionId, requestId, decision: "deny", waitMs: 0 }),
  },
  {
    action: "answer",
    way: "claude_code_check answer_question",
    on: "asking",
    drive: ({ requestId, sessionId }) =>
      tool("claude_code_check", { action: "answer_question", sessionId, requestId, answers: {}, waitMs: 0 }),
    // The open request is for a permission, without questions.
    comesTo: INVALID_ARGUMENT,
  },
  {
    action: "answer",
    way: "POST /sessions/:id/requests/:request",
    on: "asking",
    drive: ({ requestId, sessionId }) =>
      page("POST", `/sessions/${sessionId}/requests/${requestId}`, { decision: "deny" }),
  },
  {
    action: "answer",
    way: "POST /requests/:session/:request",
    on: "asking",
    drive: ({ requestId, sessionId }) => http("POST", `/requests/${sessionId}/${requestId}`, { decision: "deny" }),
  },
  { action: "answer", way: "tasks/update", on: "task", drive: ({ taskId }) => mcp("tasks/update", { taskId }) },
  toolWay("revoke", {}, INVALID_ARGUMENT),
  pageWay("revoke", () => ({}), INVALID_ARGUMENT),
  { ...pageWay("more_time", ({ requestId }) => ({ requestId })), on: "asking" },
];
