import type { HttpParts } from "./http.ts";
import type { Connection } from "./connections.ts";
import type { Running } from "./engine.ts";
import { signingKey } from "./signing-key.ts";
import { parseApprovals } from "../config/approvals/approvals-flag.ts";
import { callerApprovesOf } from "../config/approvals/settings.ts";
import { profilesOf } from "../config/profiles.ts";
import type { Config } from "../config/schema.ts";
import { isOfMachines, storeTraits } from "../config/store.ts";
import type { Logger } from "../engine/ports.ts";
import type { SessionMasks } from "../log/session-masks.ts";
import { EventStreams } from "../mcp/events/open-streams.ts";
import type { EventOptions } from "../mcp/events/parts.ts";
import { lazy } from "../mcp/lazy.ts";
import { createFollowing, type ServerContent, type ServerOptions } from "../mcp/server-options.ts";
import { createRequestStates, UnattendedClients } from "../mcp/form-state.ts";
import { waitLimits } from "../tools/arguments/wait-limits.ts";
import type { Audit } from "../tools/audit.ts";
import type { BypassSwitch, StartTask, ToolDeps } from "../tools/define.ts";
import { ConnectionNote } from "../tools/connection-note.ts";
import { hasAnswerTool, listToolNames, sendsLogs, type ToolName } from "../tools/tool-names.ts";
import { DynamicDescription } from "../tools/dynamic-description.ts";

/** Builds the options of the MCP server that serves a client, from the client's terms. */

interface ClientSettings {
  readonly config: Config;
  readonly info: { readonly name: string; readonly version: string };
  readonly outlivesClients?: boolean | undefined;
  /** Reason for serving a client without the daemon it wanted. */
  readonly withoutDaemon?: string | undefined;
}

interface ClientParts {
  readonly audit: Audit | undefined;
  readonly masker: SessionMasks;
  readonly log: Logger;
  /** Returns the engine and `termsOf`. The first tool call starts the engine. */
  readonly running: () => Promise<Pick<Running, "engine" | "store" | "termsOf">>;
  readonly stateFolder: string;
}

/** Returns a function to build the options of each connection. */
export function clientOptions(settings: ClientSettings, parts: ClientParts): (connection: Connection) => ServerOptions {
  const { log, running } = parts;
  const offer = async () => ({ library: (await import("../mcp/resources/library.ts")).LIBRARY });
  const common = {
    info: settings.info,
    states: createRequestStates(lazy(async () => stateKey(settings.config, parts))),
    following: createFollowing({ deps: running, log, offer }),
    events: {
      parts: lazy(async () => createEvents(settings, parts)),
      streams: new EventStreams(),
      reach: settings.config.eventWebhooks,
      webhooks: lazy(async () => createWebhookParts(settings, running)),
    },
  };
  const shared = { ...parts, common, settings, learned: new DynamicDescription() };
  return (connection) => buildServerOptions(connection, shared);
}

/** A folder is written as the start of a session records it: by its real path if folders are confined. */
async function createEvents(
  { config }: ClientSettings,
  { masker, running }: Pick<ClientParts, "masker" | "running">,
): ReturnType<EventOptions["parts"]> {
  const [{ store }, { createEventParts }, { confinements }, { findRealPath }] = await Promise.all([
    running(),
    import("../mcp/events/present.ts"),
    import("../config/confinement.ts"),
    import("../security/paths.ts"),
  ]);
  const confine = confinements(config);
  return createEventParts({
    store,
    maskOf: (sessionId) => (fields) => masker.ofSession(sessionId).fields(fields),
    folderOf: async (principal, cwd) => {
      const isConfined = (confine(principal)?.allowDirs.length ?? 0) > 0;
      return (isConfined ? await findRealPath(cwd) : undefined) ?? cwd;
    },
  });
}

async function createWebhookParts({ config }: ClientSettings, running: ClientParts["running"]) {
  const [{ store }, { subscribing }] = await Promise.all([running(), import("./webhooks.ts")]);
  return subscribing(store.outbox, config.eventWebhooks === "any" ? "any" : "public");
}

/**
 * Returns a note for the first answer if work outlives the client, or if the client wanted a daemon and has none. Otherwise
 * `undefined`: work ends as with any server on stdio or over HTTP.
 */
function firstAnswerNote({
  masker,
  settings,
  toolNames,
}: Pick<ForDeps, "masker" | "settings" | "toolNames">): string | undefined {
  const { outlivesClients, withoutDaemon } = settings;
  if (outlivesClients) {
    const how = STOPPING.find(([name]) => toolNames.includes(name))?.[1];
    return `Work goes on in a daemon when this client ends.${how === undefined ? "" : ` To stop a session, ${how}.`}`;
  }
  if (withoutDaemon === undefined) return undefined;
  return `Work is interrupted when this client ends, because no daemon is available: ${masker.text(withoutDaemon)}`;
}

/** Tools that end the work of a single session, with advice. Ending the daemon would end the sessions of all clients. */
const STOPPING: readonly (readonly [ToolName, string])[] = [
  ["claude_code_session", "cancel it with claude_code_session (action: cancel)"],
  ["claude_session_close", "close it with claude_session_close"],
];

const DAY_MS = 86_400_000;

/** Signs with a random key if sessions are in memory, because both end with this process. */
async function stateKey(
  { store: location }: Config,
  { log, running, stateFolder }: Pick<ClientParts, "log" | "running" | "stateFolder">,
) {
  if (location && !storeTraits(location).isShared) return crypto.getRandomValues(new Uint8Array(32));
  // Starts no engine for the key of the state folder.
  const machines = location && isOfMachines(location) ? (await running()).store.machines : undefined;
  return signingKey({ purpose: "request-state", machines, stateFolder, lost: "open forms are lost", log });
}

interface SharedParts extends ClientParts {
  readonly settings: ClientSettings;
  readonly common: Pick<ServerOptions, "events" | "following" | "info" | "states">;
  /** Shared by all connections with `dynamicDescription`. */
  readonly learned: DynamicDescription;
}

/** Builds the options for `connection`. */
function buildServerOptions(connection: Connection, shared: SharedParts): ServerOptions {
  const { bypass, config, leaving, log } = connection;
  const toolNames = listToolNames(config.toolsets, config.query);
  const reported = config.dynamicDescription ? shared.learned : undefined;
  const deps = lazy(async () => createToolDeps(connection, { ...shared, reported, toolNames }));
  return {
    ...shared.common,
    toolNames,
    reported,
    limits: { maxWaitMs: config.maxWaitMs, allowsDiskResume: config.allowDiskResume },
    tasks: { keptMs: config.retentionDays * DAY_MS },
    logs: toolNames.some((name) => sendsLogs(name)),
    deps,
    leaving,
    log,
    offer: lazy(async () => loadOffer(config, bypass)),
    unattended: new UnattendedClients(log),
  };
}

type ForDeps = SharedParts & Pick<ServerOptions, "reported" | "toolNames">;

async function createToolDeps(connection: Connection, parts: ForDeps): Promise<ToolDeps> {
  const { audit, masker, reported, running, settings, toolNames } = parts;
  const note = firstAnswerNote(parts);
  const { bypass, cwd, heard, id, log } = connection;
  const { engine, termsOf } = await running();
  return {
    ...toolSettings(connection, toolNames, settings.outlivesClients),
    engine: engine.forConnection(termsOf(connection)),
    audit: audit && ((entry) => audit({ connection: id, ...entry })),
    bypass,
    defaults: { cwd },
    first: note === undefined ? undefined : new ConnectionNote(note),
    log,
    mask: (fields) => masker.fields(fields),
    onCall: ({ elicitation }) => heard(elicitation !== false),
    reported,
  };
}

/** Returns the part of `ToolDeps` derived from the configuration. */
function toolSettings(
  { config, environment }: Pick<Connection, "config" | "environment">,
  listed: readonly ToolName[],
  outlivesClients = false,
): Pick<
  ToolDeps,
  | "allows"
  | "callerApproves"
  | "callersAnswer"
  | "diskResume"
  | "folders"
  | "approvalChain"
  | "limits"
  | "listed"
  | "now"
  | "outlivesClients"
  | "profilesOf"
  | "startTask"
> {
  return {
    listed,
    callersAnswer: hasAnswerTool(listed),
    startTask: beginTask,
    approvalChain: parseApprovals(config.approvals).approvers,
    now: () => Date.now(),
    outlivesClients,
    limits: waitLimits(config.maxWaitMs),
    callerApproves: callerApprovesOf(config),
    diskResume: { allowed: config.allowDiskResume, secret: resumeSecret(environment) },
    allows: { sensitiveDetails: config.allowSensitiveSessionDetails },
    profilesOf: profilesOf(config),
    folders: async (principal, typed) => {
      const [{ foldersBelow }, { confinements }] = await Promise.all([
        import("../claude/preflight/session-paths.ts"),
        import("../config/confinement.ts"),
      ]);
      const confinement = confinements(config)(principal);
      return confinement ? foldersBelow(typed, confinement) : [];
    },
  };
}

const beginTask: StartTask = async (...given) => (await import("../mcp/tasks/task-id.ts")).startTask(...given);

/** Returns checks of a message for the HTTP endpoint. The first use loads the tools. */
export function messageChecks({ offer }: ServerOptions): Pick<HttpParts, "scopeMissing" | "takesAttachments"> {
  const judges = lazy(async () => import("../mcp/tool-answers.ts"));
  return {
    scopeMissing: async (caller, body) => (await judges()).scopeMissing((await offer()).tools, caller, body),
    takesAttachments: async (body) => (await judges()).takesAttachments((await offer()).tools, body),
  };
}

async function loadOffer(config: Config, bypass: BypassSwitch): Promise<ServerContent> {
  const [{ toolsOf }, { LIBRARY }, { availablePrompts }] = await Promise.all([
    import("../tools/toolsets.ts"),
    import("../mcp/resources/library.ts"),
    import("../mcp/prompts/prompts.ts"),
  ]);
  const query = config.query;
  const prompts = availablePrompts(listToolNames(config.toolsets, query));
  const gate = () => ({ allowsBypass: bypass.isAllowed(), bound: callerApprovesOf(config) });
  return { tools: toolsOf(config.toolsets, { query, gate }), library: LIBRARY, prompts };
}

/** Treats "" as unset, because an empty secret protects nothing. */
function resumeSecret({ CLAUDE_CODE_MCP_RESUME_SECRET: secret }: NodeJS.ProcessEnv): string | undefined {
  return secret === "" ? undefined : secret;
}

/** Returns options for clients that get `links`. */
export function withLinks({ deps, ...options }: ServerOptions, links: ToolDeps["links"]): ServerOptions {
  return { ...options, deps: async () => ({ ...(await deps()), links }) };
}

/** Loads all modules of the first calls, except the Agent SDK. Files of this program may be deleted afterwards. */
export async function preload(): Promise<void> {
  await Promise.all([
    import("../claude/preflight/session-paths.ts"),
    import("../claude/runtime.ts"),
    import("../config/confinement.ts"),
    import("../mcp/events/present.ts"),
    import("../mcp/events/serve.ts"),
    import("./webhooks.ts").then(async ({ preloadWebhooks }) => preloadWebhooks()),
    import("../mcp/prompts/completion-answers.ts"),
    import("../mcp/prompts/prompt-answers.ts"),
    import("../mcp/prompts/prompts.ts"),
    import("../mcp/resources/library.ts"),
    import("../mcp/resources/resource-answers.ts"),
    import("../mcp/tasks/answer.ts"),
    import("../mcp/tasks/task-id.ts"),
    import("../mcp/tool-answers.ts"),
    import("../mcp/watch/listen-request.ts"),
    import("../mcp/watch/session-watch.ts"),
    import("../mcp/watch/subscriptions.ts"),
    import("../security/key-file.ts"),
    import("../security/paths.ts"),
    import("../tools/toolsets.ts"),
  ]);
}
