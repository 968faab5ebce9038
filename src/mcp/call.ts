import { setTimeout as sleep } from "node:timers/promises";
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  inputResponse,
  PROTOCOL_VERSION_META_KEY,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { callerOf } from "./caller.ts";
import type { Caller } from "../domain/principal.ts";
import type { FormAnswer } from "../tools/elicitation/needs-input.ts";
import { waitLimits } from "../tools/arguments/wait-limits.ts";
import type { LogLevel, ToolCall, ToolLimits } from "../tools/define.ts";
import type { ServerOptions } from "./server-options.ts";
import type { FormClient } from "./states.ts";
import { TASKS_EXTENSION } from "./tasks/extension.ts";

/** One tool call as the tools know it, made of what the protocol has of it in either era. */

/** In the modern era a client says with each request whether it takes logs, and which; before, they go to every client. */
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** Of what is reported in a line while a call waits. */
const NEWS_LOGGER = "claude_code";

/**
 * Clients lose a progress notification that comes in one chunk with the result of its call:
 * https://github.com/modelcontextprotocol/typescript-sdk/issues/2580
 */
const PROGRESS_LEAD_MS = 2;

interface OpenedCall {
  readonly call: ToolCall;
  /** Resolves when what was reported while the call ran is sure to be heard before its result. */
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
  // Single keys of the later era's envelope may come from any client.
  return at(mcpReq.envelope, PROTOCOL_VERSION_META_KEY) === undefined;
}

/** What a client of the 2025 era has said of itself, once for all its requests; later each says it again. */
export interface Said {
  readonly capabilities: unknown;
  /** As it introduces itself. */
  readonly clientInfo: unknown;
  /** The least of the levels that it wants; undefined where it has said nothing. */
  readonly logLevel: string | undefined;
}

/** What calls of this client may do: how long they may block, and what the operator allows. */
export function limitsOf(
  { mcpReq }: ServerContext,
  { clientInfo }: Pick<Said, "clientInfo">,
  { allowsDiskResume = false, maxWaitMs }: ServerOptions["limits"],
): ToolLimits {
  const name = textOf(at(at(mcpReq.envelope, CLIENT_INFO_META_KEY) ?? clientInfo, "name"));
  return { ...waitLimits(maxWaitMs, name), allowsDiskResume };
}

interface CallParts extends Pick<ServerOptions, "leaving" | "unattended"> {
  readonly round: Round;
  /** Counts over all rounds of a call. */
  readonly reported: { progress: number };
}

export function openCall(
  context: ServerContext,
  { capabilities, clientInfo, logLevel }: Said,
  { leaving, round, reported, unattended }: CallParts,
): OpenedCall {
  const { mcpReq } = context;
  const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope };
  const client = envelope[CLIENT_CAPABILITIES_META_KEY] ?? capabilities;
  const asked = logLevel ?? envelope[LOG_LEVEL];
  const takesLogs = isLegacy(context) || typeof envelope[LOG_LEVEL] === "string";
  const { _meta: meta } = mcpReq;
  const progressToken = meta?.progressToken;
  let sent: Promise<void> | undefined;
  // Strictly increasing, whatever part of the call has something to say.
  const progress = (message: string): void => {
    reported.progress += 1;
    // A client that is gone hears nothing; the call ends by its signal.
    sent = mcpReq
      .notify({ method: "notifications/progress", params: { progressToken, progress: reported.progress, message } })
      .catch(() => undefined);
  };
  const log = async (level: LogLevel, data: unknown, logger?: string): Promise<void> => {
    if (!isWanted(level, asked)) return;
    // oxlint-disable-next-line typescript/no-deprecated -- streaming by log is what these tools promise
    sent = mcpReq.log(level, data, logger).catch(() => undefined);
    await sent;
  };
  const caller = callerOf(context);
  const shows = formClient(caller, context, envelope[CLIENT_INFO_META_KEY] ?? clientInfo);
  const call: ToolCall = {
    ...caller,
    signal: mcpReq.signal,
    client: {
      elicitation:
        takesForms(at(client, "elicitation")) && !unattended.has(shows) && (isLegacy(context) ? "during" : "between"),
      isLocal: context.http === undefined,
      name: shows.name?.slice(0, MAX_NAME),
      noteUnattended: () => unattended.add(shows),
      leaving,
      tasks: !isLegacy(context) && at(at(client, "extensions"), TASKS_EXTENSION) !== undefined,
      ...(takesLogs && { log }),
      // Only for clients that set a log level: others do not read log messages.
      ...(asked !== undefined && isWanted("info", asked) && { news: (line) => void log("info", line, NEWS_LOGGER) }),
      ...(progressToken !== undefined && { progress }),
    },
    resumeState: round.state,
    inputResponses: round.answers,
    answeredAt: Date.now(),
  };
  const settled = async (): Promise<void> => {
    if (sent) await sent.then(async () => sleep(PROGRESS_LEAD_MS));
  };
  return { call, settled };
}

function formClient({ principal }: Caller, { sessionId }: ServerContext, clientInfo: unknown): FormClient {
  const [name, version] = ["name", "version"].map((key) => textOf(at(clientInfo, key)));
  return { principal, sessionId, name, version };
}

/** Of a client's own name, in the audit log. */
const MAX_NAME = 100;

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The levels of the protocol, the least first. */
const LEVELS: readonly unknown[] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

function isWanted(level: LogLevel, least: unknown): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(least);
}

/** An empty capability means forms; one that names only URLs does not. */
function takesForms(elicitation: unknown): boolean {
  if (typeof elicitation !== "object" || elicitation === null) return false;
  return at(elicitation, "form") !== undefined || at(elicitation, "url") === undefined;
}

function at(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
