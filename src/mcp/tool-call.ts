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
import { declaresTasks, showsForms, waitLimits, type ToolLimits } from "../tools/arguments/wait-limits.ts";
import type { LogLevel, ToolCall } from "../tools/define.ts";
import type { ServerOptions } from "./server-options.ts";
import type { FormClient } from "./form-state.ts";
import { readField } from "./unanswered-requests.ts";

/**
 * Builds the `ToolCall` of a request, for clients of both protocol eras: a legacy client states its facts once for all
 * requests, a modern client (from 2026-07-28 on) in each request.
 */

/**
 * Key of `_meta` by which a modern client asks for log messages and names their minimum level. Legacy clients always get log
 * messages.
 */
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** Logger name of `news`: lines about an awaited session, sent while the call waits. */
const NEWS_LOGGER = "claude_code";

/**
 * Minimum time between a progress notification and the result of the call, ms. Clients lose a notification that arrives in one
 * chunk with the result: https://github.com/modelcontextprotocol/typescript-sdk/issues/2580
 */
const PROGRESS_LEAD_MS = 2;

interface OpenedCall {
  readonly call: ToolCall;
  /** Resolves `PROGRESS_LEAD_MS` after the last notification of the call is sent. Await before the result is sent. */
  readonly settled: () => Promise<void>;
}

/** State and answers with which a client repeats a call after a form. */
export interface Round {
  readonly state: unknown;
  readonly answers: Readonly<Record<string, FormAnswer>>;
}

/** Reads the round from a request. The SDK has already verified `requestState` with `RequestStates.verify`. */
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

/** True for clients before 2026-07-28: their capabilities come with `initialize`, and forms are requests to the client. */
export function isLegacy({ mcpReq }: ServerContext): boolean {
  // Tests `PROTOCOL_VERSION_META_KEY`, because any client may send single keys of the later envelope.
  return readField(mcpReq.envelope, PROTOCOL_VERSION_META_KEY) === undefined;
}

/** Facts that a legacy client states once for all requests. A modern client repeats the facts in each request. */
export interface ClientFacts {
  readonly capabilities: unknown;
  /** `clientInfo` as sent by the client. */
  readonly clientInfo: unknown;
  /** Minimum level of log messages; `undefined` if the client has set none. */
  readonly logLevel: string | undefined;
}

/** Returns the limits for calls of this client: maximum wait, and resuming from disk if the operator allows it. */
export function limitsOf(
  { mcpReq }: ServerContext,
  { clientInfo }: Pick<ClientFacts, "clientInfo">,
  options: LimitOptions,
): ToolLimits {
  return limitsFor(mcpReq.envelope, clientInfo, options);
}

type LimitOptions = Pick<ServerOptions, "limits"> & Partial<Pick<ServerOptions, "tasks">>;

/** `envelope` describes the client of a request of the 2026 era, `clientInfo` that of an earlier `initialize`. */
export function limitsFor(envelope: unknown, clientInfo: unknown, { limits, tasks }: LimitOptions): ToolLimits {
  const name = asString(readField(readField(envelope, CLIENT_INFO_META_KEY) ?? clientInfo, "name"));
  const isModern = readField(envelope, PROTOCOL_VERSION_META_KEY) !== undefined;
  const capabilities = tasks && isModern ? readField(envelope, CLIENT_CAPABILITIES_META_KEY) : undefined;
  const { allowsDiskResume = false, maxWaitMs } = limits;
  return { ...waitLimits(maxWaitMs, { name, capabilities }), allowsDiskResume };
}

interface CallParts extends Pick<ServerOptions, "leaving" | "unattended"> {
  readonly round: Round;
  /** Number of progress notifications over all rounds of a call. */
  readonly reported: { progress: number };
}

export function openCall(
  context: ServerContext,
  { capabilities, clientInfo, logLevel }: ClientFacts,
  { leaving, round, reported, unattended }: CallParts,
): OpenedCall {
  const { mcpReq } = context;
  const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope };
  const client = envelope[CLIENT_CAPABILITIES_META_KEY] ?? capabilities;
  const minLevel = logLevel ?? envelope[LOG_LEVEL];
  const takesLogs = isLegacy(context) || typeof envelope[LOG_LEVEL] === "string";
  const { _meta: meta } = mcpReq;
  const progressToken = meta?.progressToken;
  let sent: Promise<void> | undefined;
  // Increases strictly over all rounds of the call, as MCP requires.
  const progress = (message: string): void => {
    reported.progress += 1;
    // Ignores failures: a client that has left reads nothing, and `signal` ends the call.
    sent = mcpReq
      .notify({ method: "notifications/progress", params: { progressToken, progress: reported.progress, message } })
      .catch(() => undefined);
  };
  const log = async (level: LogLevel, data: unknown, logger?: string): Promise<void> => {
    if (!isWanted(level, minLevel)) return;
    // oxlint-disable-next-line typescript/no-deprecated -- streaming by log is what these tools promise
    sent = mcpReq.log(level, data, logger).catch(() => undefined);
    await sent;
  };
  const caller = callerOf(context);
  const formClient = identifyClient(caller, context, envelope[CLIENT_INFO_META_KEY] ?? clientInfo);
  const call: ToolCall = {
    ...caller,
    signal: mcpReq.signal,
    client: {
      elicitation: showsForms(client) && !unattended.has(formClient) && (isLegacy(context) ? "during" : "between"),
      opensUrls: readField(readField(client, "elicitation"), "url") !== undefined,
      isLocal: context.http === undefined,
      name: formClient.name?.slice(0, MAX_NAME),
      noteUnattended: () => unattended.add(formClient),
      leaving,
      tasks: !isLegacy(context) && declaresTasks(client),
      ...(takesLogs && { log }),
      // Only for clients that set a log level: others do not read log messages.
      ...(minLevel !== undefined &&
        isWanted("info", minLevel) && { news: (line) => void log("info", line, NEWS_LOGGER) }),
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

function identifyClient({ principal }: Caller, { sessionId }: ServerContext, clientInfo: unknown): FormClient {
  const [name, version] = ["name", "version"].map((key) => asString(readField(clientInfo, key)));
  return { principal, sessionId, name, version };
}

/** Maximum length of a client's own name in the audit log, characters. */
const MAX_NAME = 100;

function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Levels of MCP, in ascending order. */
const LEVELS: readonly unknown[] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

function isWanted(level: LogLevel, least: unknown): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(least);
}
