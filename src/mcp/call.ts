import { setTimeout as sleep } from "node:timers/promises";
import { CLIENT_CAPABILITIES_META_KEY, inputResponse, type ServerContext } from "@modelcontextprotocol/server";
import { callerOf } from "./caller.ts";
import type { FormAnswer } from "../tools/asking/needs-input.ts";
import type { LogLevel, ToolCall } from "../tools/define.ts";

/** One tool call as the tools know it, made of what the protocol has of it in either era. */

const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
/** In the modern era a client says with each request whether it takes logs, and which; before, they go to every client. */
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** Clients lose a progress notification that comes in one chunk with the result of its call. */
const PROGRESS_LEAD_MS = 2;

interface OpenedCall {
  readonly call: ToolCall;
  /** Resolves when what was told while the call ran is sure to be heard before its result. */
  readonly settled: () => Promise<void>;
}

/** What a call comes back with after a form. */
export interface Round {
  readonly state: unknown;
  readonly answers: Readonly<Record<string, FormAnswer>>;
}

/** As the client has sent it. The state was verified before anything of ours saw it (states.ts). */
export function roundOf({ mcpReq }: ServerContext): Round {
  const { inputResponses = {} } = mcpReq;
  const answers = Object.keys(inputResponses).flatMap((key) => {
    const answer = formAnswer(inputResponses, key);
    return answer ? [[key, answer] as const] : [];
  });
  return { state: mcpReq.requestState(), answers: Object.fromEntries(answers) };
}

export function formAnswer(responses: Record<string, unknown>, key: string): FormAnswer | undefined {
  const response = inputResponse(responses, key);
  if (response.kind !== "elicit") return undefined;
  const { action, content = {} } = response;
  return action === "accept" ? { action, content } : { action };
}

/** Before 2026-07-28 what a client can do is known from its initialize, and forms are requests to it. */
export function isLegacy({ mcpReq }: ServerContext): boolean {
  return mcpReq.envelope === undefined;
}

/** `capabilities` is what the client said of itself at initialize; in the modern era every request says it again. */
export function openCall(context: ServerContext, capabilities: unknown, round: Round): OpenedCall {
  const { mcpReq } = context;
  const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope };
  const client = envelope[CLIENT_CAPABILITIES_META_KEY] ?? capabilities;
  const takesLogs = isLegacy(context) || typeof envelope[LOG_LEVEL] === "string";
  const { _meta: meta } = mcpReq;
  const progressToken = meta?.progressToken;
  let sent: Promise<void> | undefined;
  const progress = (news: { progress: number; message: string }): void => {
    // A client that is gone hears nothing; the call ends by its signal.
    sent = mcpReq
      .notify({ method: "notifications/progress", params: { progressToken, ...news } })
      .catch(() => undefined);
  };
  const log = async (level: LogLevel, data: unknown, logger?: string): Promise<void> => {
    // oxlint-disable-next-line typescript/no-deprecated -- streaming by log is what these tools promise
    sent = mcpReq.log(level, data, logger).catch(() => undefined);
    await sent;
  };
  const call: ToolCall = {
    ...callerOf(context),
    signal: mcpReq.signal,
    client: {
      elicitation: takesForms(at(client, "elicitation")) && (isLegacy(context) ? "during" : "between"),
      tasks: at(at(client, "extensions"), TASKS_EXTENSION) !== undefined,
      ...(takesLogs && { log }),
      ...(progressToken !== undefined && { progress }),
    },
    resumeState: round.state,
    inputResponses: round.answers,
  };
  const settled = async (): Promise<void> => {
    if (!sent) return;
    await sent;
    await sleep(PROGRESS_LEAD_MS);
  };
  return { call, settled };
}

/** An empty capability means forms; one that names only URLs does not. */
function takesForms(elicitation: unknown): boolean {
  if (typeof elicitation !== "object" || elicitation === null) return false;
  return at(elicitation, "form") !== undefined || at(elicitation, "url") === undefined;
}

function at(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
