import { hasPrompts, instructionsFor, listToolNames, sendsLogs, type ToolName } from "../tools/tool-names.ts";
import { waitLimits, type ToolLimits, type WaitingClient } from "../tools/arguments/wait-limits.ts";
import { describeQuery } from "../tools/query/description.ts";
import {
  isLogLevel,
  isPlainMeta,
  readMessage,
  readEnvelope,
  readInitialize,
  type ClientMessage,
} from "./client-messages.ts";
import { readSettings, type Sources } from "./known-settings.ts";
import {
  capabilityKey,
  modeKey,
  readStaticFile,
  variantKey,
  type Era,
  type JsonFields,
  type ListedTool,
  type StaticFile,
  type StaticSettings,
} from "./static-file.ts";

/**
 * Answers known before the daemon is there. Clients wait only one to three seconds for answers, and then go on without tools or
 * with an older protocol. Undecided cases are left to the daemon.
 */

export interface StaticAnswer {
  /** `undefined` for a notification. */
  readonly line: string | undefined;
}

interface StaticContext {
  readonly file: StaticFile;
  readonly settings: StaticSettings;
  readonly names: readonly ToolName[];
}

const LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
const DISCOVER = "server/discover";
const INITIALIZED = "notifications/initialized";

export class StaticAnswers {
  readonly #sources: Sources;
  readonly #readFile: () => StaticFile | undefined;
  /** `null` if the daemon has to answer everything. */
  #known: StaticContext | null | undefined;
  /** Client of the `legacy` era, set by `initialize`. */
  #client: WaitingClient | undefined;
  /** Set after a message other than `initialize` has decided the era of the conversation. */
  #hasBegun = false;

  constructor(sources: Sources, readFile = readStaticFile) {
    this.#sources = sources;
    this.#readFile = readFile;
  }

  /** Returns `undefined` for a line that the daemon has to answer. */
  answerTo(line: string): StaticAnswer | undefined {
    const answer = this.#answerTo(line);
    if (!answer) this.#hasBegun = true;
    return answer;
  }

  #answerTo(line: string): StaticAnswer | undefined {
    const message = readMessage(line);
    if (!message || !isCandidate(message)) return undefined;
    const known = (this.#known ??= loadContext(this.#sources, this.#readFile()) ?? null);
    if (!known) return undefined;
    const { id } = message;
    if (id === undefined) return this.#client === undefined ? undefined : { line: undefined };
    const result = this.#chooseResult(message, known);
    return result && { line: JSON.stringify({ result, jsonrpc: "2.0", id }) };
  }

  #chooseResult({ method, params }: ClientMessage, known: StaticContext): JsonFields | undefined {
    if (method === "initialize") return this.#initialize(params, known);
    const { _meta: meta, ...others } = params;
    if (!isPlainMeta(meta)) return this.#modern(method, params, known);
    const client = this.#client;
    if (client === undefined || method === DISCOVER) return undefined;
    if (method === "logging/setLevel") return isLogLevel(others["level"]) && sendsLogsOf(known) ? {} : undefined;
    if (Object.keys(others).length > 0) return undefined;
    return method === "ping" ? {} : listOf(known, "legacy", { client, method });
  }

  #initialize(params: JsonFields, known: StaticContext): JsonFields | undefined {
    const said = readInitialize(params);
    if (this.#client !== undefined || this.#hasBegun || !said) return undefined;
    if (!known.file.versions.includes(said.version)) return undefined;
    const { name } = said;
    this.#client = { name };
    return { ...introductionOf(known, "legacy", "initialize", { name }), protocolVersion: said.version };
  }

  #modern(method: string, params: JsonFields, known: StaticContext): JsonFields | undefined {
    const said = readEnvelope(params);
    if (said?.version !== known.file.revision || this.#client !== undefined) return undefined;
    if (method === DISCOVER) return introductionOf(known, "modern", method, said);
    this.#hasBegun = true;
    return listOf(known, "modern", { client: said, method });
  }
}

/** Filters by method, before the file is read. */
function isCandidate({ id, method }: ClientMessage): boolean {
  if (id === undefined) return method === INITIALIZED;
  return ["initialize", "logging/setLevel", "ping", DISCOVER, ...LISTS].includes(method);
}

/** Returns `undefined` if only the daemon knows its answers. */
function loadContext(sources: Sources, file: StaticFile | undefined): StaticContext | undefined {
  const given = file && readSettings(file.settings, sources);
  if (!given) return undefined;
  const settings = settingsOf(file, given);
  const names = listToolNames(settings.toolsets, settings.query);
  // Dynamic descriptions depend on sessions, and a server without tools does not start.
  return settings.dynamicDescription || names.length === 0 ? undefined : { file, settings, names };
}

const QUERY = "query.";

function settingsOf({ defaults }: StaticFile, given: ReadonlyMap<string, unknown>): StaticSettings {
  const keys = [...given].filter(([key]) => key.startsWith(QUERY));
  const query = Object.fromEntries(keys.map(([key, value]) => [key.slice(QUERY.length), value]));
  return { ...defaults, ...Object.fromEntries(given), query: { ...defaults.query, ...query } };
}

function sendsLogsOf({ names }: StaticContext): boolean {
  return names.some((name) => sendsLogs(name));
}

function introductionOf(known: StaticContext, era: Era, method: string, client: WaitingClient): JsonFields {
  const { file, names } = known;
  const key = capabilityKey(era, { prompts: hasPrompts(names), logs: sendsLogsOf(known) });
  const instructions = instructionsFor(names, limitsOf(known, client));
  const { instructions: _, ...others } = file.results[era][method] ?? {};
  const filled = instructions === "" ? others : file.results[era][method];
  return { ...filled, capabilities: file.capabilities[key], ...(instructions !== "" && { instructions }) };
}

function listOf(
  known: StaticContext,
  era: Era,
  { client, method }: { readonly client: WaitingClient; readonly method: string },
): JsonFields | undefined {
  const { file, names } = known;
  const result = file.results[era][method];
  if (method === "prompts/list" && !hasPrompts(names)) return undefined;
  return method === "tools/list" ? { ...result, tools: toolsOf(known, client) } : result;
}

function limitsOf({ settings }: StaticContext, client: WaitingClient): ToolLimits {
  return waitLimits(settings.maxWaitMs, client);
}

function toolsOf(known: StaticContext, client: WaitingClient): JsonFields[] {
  const { file, names, settings } = known;
  const limits = limitsOf(known, client);
  const variant = variantKey({ ...limits, allowsDiskResume: settings.allowDiskResume });
  return names.map((name) => {
    const tool = withMaximum(file.tools[variant]?.[name] ?? file.tools[""]?.[name], limits.maxWaitMs);
    return name === "claude_code_query" ? { ...tool, description: queryDescription(file, settings, limits) } : tool;
  });
}

function withMaximum(tool: ListedTool | undefined, maximum: number): JsonFields {
  const waitMs = tool?.inputSchema.properties["waitMs"];
  if (!tool || !waitMs) return { ...tool };
  const properties = { ...tool.inputSchema.properties, waitMs: { ...waitMs, maximum } };
  return { ...tool, inputSchema: { ...tool.inputSchema, properties } };
}

/** A daemon serves no HTTP, so `callerApproves` is "all" unless the operator says otherwise. */
function queryDescription({ replacedModes }: StaticFile, settings: StaticSettings, limits: ToolLimits): string {
  const { allowBypass, callerApproves = "all", query } = settings;
  const { enabled: _, permissionMode: mode, ...defaults } = query;
  const isReplaced = replacedModes.includes(modeKey(mode, callerApproves, allowBypass));
  return describeQuery(defaults, { isReplaced, mode: isReplaced ? "dontAsk" : mode }, limits);
}
