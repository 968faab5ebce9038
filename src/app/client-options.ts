import type { HttpParts } from "./http.ts";
import { type Connection, termsOf } from "./connections.ts";
import { parseApprovals } from "../config/approvals/approvals-flag.ts";
import { callerApprovesOf } from "../config/approvals/settings.ts";
import { querySettings } from "../config/query.ts";
import type { Config } from "../config/schema.ts";
import { storeTraits } from "../config/store.ts";
import type { Engine } from "../engine/api.ts";
import type { Operator } from "../engine/policy/operator.ts";
import type { Logger } from "../engine/ports.ts";
import type { Masker } from "../log/mask.ts";
import { lazy } from "../mcp/lazy.ts";
import { followingOf, type Offer, type ServerOptions } from "../mcp/server-options.ts";
import { createStates, Unattended } from "../mcp/states.ts";
import { waitLimits } from "../tools/arguments/wait-limits.ts";
import type { Audit } from "../tools/audit.ts";
import type { BypassSwitch, StartTask, ToolDeps } from "../tools/define.ts";
import { FirstAnswer } from "../tools/first-answer.ts";
import { canAnswer, namesOf, sendsLogs, type ToolName } from "../tools/listed.ts";
import type { ReportedTools } from "../tools/reported-tools.ts";

/** What MCP clients are served with: the same for all, but for what belongs to the connection of each. */

interface ClientSettings {
  readonly config: Config;
  readonly environment: NodeJS.ProcessEnv;
  readonly info: { readonly name: string; readonly version: string };
  readonly outlivesClients?: boolean | undefined;
  /** Why this process serves a client that was to have a daemon. */
  readonly withoutDaemon?: string | undefined;
}

interface ClientParts {
  readonly toolNames: readonly ToolName[];
  readonly reported: ReportedTools | undefined;
  readonly audit: Audit | undefined;
  readonly masker: Masker;
  readonly log: Logger;
  /** The engine of the node and its terms; resolved by the first tool call. */
  readonly running: () => Promise<{ readonly engine: Engine; readonly operator: Operator }>;
  readonly stateFolder: string;
}

type SharedOptions = Omit<ServerOptions, "deps" | "leaving" | "log" | "offer" | "unattended">;
type SharedDeps = Omit<ToolDeps, "bypass" | "defaults" | "first" | "log" | "onCall">;

/** Makes the options of each connection. */
export function clientOptions(settings: ClientSettings, parts: ClientParts): (connection: Connection) => ServerOptions {
  const { audit, masker, reported, toolNames } = parts;
  const offer = async () => ({ library: (await import("../mcp/resources/library.ts")).LIBRARY });
  const mask: ToolDeps["mask"] = (fields) => masker.fields(fields);
  const shared = lazy(async (): Promise<SharedDeps> => {
    const { engine } = await parts.running();
    return { ...toolSettings(settings, toolNames), engine, audit, mask, reported };
  });
  const operator = async () => (await parts.running()).operator;
  const following = followingOf({ deps: shared, log: parts.log, offer });
  const common = { ...sharedOptions(settings, parts), following };
  const note = noteOf(settings, masker);
  return (connection) => serverOptionsOf(settings.config, { common, connection, note, operator, shared });
}

/** What becomes of a client's work when the client ends; undefined where that is as with any server on stdio, or over HTTP. */
function noteOf({ outlivesClients, withoutDaemon }: ClientSettings, masker: Masker): string | undefined {
  if (outlivesClients)
    return "Work goes on in a daemon when this client ends; `claude-agents-mcp daemon stop` stops it.";
  if (withoutDaemon === undefined) return undefined;
  return `Work is interrupted when this client ends, because no daemon can be had: ${masker.text(withoutDaemon)}`;
}

const DAY_MS = 86_400_000;

/** What every client is served with. */
function sharedOptions(
  { config, info }: ClientSettings,
  { log, reported, stateFolder, toolNames }: ClientParts,
): Omit<SharedOptions, "following"> {
  return {
    toolNames,
    reported,
    info,
    limits: { maxWaitMs: config.maxWaitMs, allowsDiskResume: config.allowDiskResume },
    states: createStates(lazy(async () => stateKey(config, { log, stateFolder }))),
    tasks: config.tasks === "auto" ? { keptMs: config.retentionDays * DAY_MS } : undefined,
    logs: toolNames.some((name) => sendsLogs(name)),
  };
}

/**
 * Sessions in memory end with this process, and so does what was signed for them. Without a key file a form still works; its
 * answer is then good for this process alone.
 */
async function stateKey(
  { store }: Config,
  { log, stateFolder }: Pick<ClientParts, "log" | "stateFolder">,
): Promise<Uint8Array> {
  if (!store || storeTraits(store).isShared) {
    const { keyFor } = await import("../security/key-file.ts");
    try {
      return await keyFor("request-state", stateFolder);
    } catch (error) {
      log.warn("the key of the state folder cannot be used: open forms are lost when this process ends", {
        error: String(error),
      });
    }
  }
  return crypto.getRandomValues(new Uint8Array(32));
}

interface ConnectionParts {
  readonly common: SharedOptions;
  readonly connection: Connection;
  /** In the first answer. */
  readonly note: string | undefined;
  readonly operator: () => Promise<Operator>;
  readonly shared: () => Promise<SharedDeps>;
}

/** What the clients of one connection are served with. */
function serverOptionsOf(
  config: Config,
  { common, connection, note, operator, shared }: ConnectionParts,
): ServerOptions {
  const { bypass, cwd, id, leaving, log } = connection;
  const deps = lazy(async (): Promise<ToolDeps> => {
    const { audit, engine, ...rest } = await shared();
    const own = engine.forConnection(termsOf(await operator(), connection));
    const audited: Audit | undefined = audit && ((entry) => audit({ connection: id, ...entry }));
    const onCall: ToolDeps["onCall"] = ({ elicitation }) => connection.heard(elicitation !== false);
    const first = note === undefined ? undefined : new FirstAnswer(note);
    return { ...rest, engine: own, audit: audited, bypass, defaults: { cwd }, first, log, onCall };
  });
  const offer = lazy(async () => offerOf(config, bypass));
  return { ...common, deps, leaving, log, offer, unattended: new Unattended(log) };
}

/** What tools learn of the configuration. */
function toolSettings(
  { config, environment, outlivesClients = false }: ClientSettings,
  listed: readonly ToolName[],
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
  | "startTask"
> {
  return {
    listed,
    callersAnswer: canAnswer(listed),
    startTask: config.tasks === "auto" ? beginTask : undefined,
    approvalChain: parseApprovals(config.approvals).approvers,
    now: () => Date.now(),
    outlivesClients,
    limits: waitLimits(config.maxWaitMs),
    callerApproves: callerApprovesOf(config),
    diskResume: { allowed: config.allowDiskResume, secret: resumeSecret(environment) },
    allows: { sensitiveDetails: config.allowSensitiveSessionDetails },
    folders: async (principal, typed) => {
      const [{ foldersBelow }, { confinements }] = await Promise.all([
        import("../claude/check/folders.ts"),
        import("../config/confinement.ts"),
      ]);
      const confinement = confinements(config)(principal);
      return confinement ? foldersBelow(typed, confinement) : [];
    },
  };
}

const beginTask: StartTask = async (...given) => (await import("../mcp/tasks/task-id.ts")).startTask(...given);

/** What the HTTP endpoint asks about a message. */
export function judgesOf({ offer }: ServerOptions): Pick<HttpParts, "scopeMissing" | "takesAttachments"> {
  const judges = lazy(async () => import("../mcp/tools.ts"));
  return {
    scopeMissing: async (caller, body) => (await judges()).scopeMissing((await offer()).tools, caller, body),
    takesAttachments: async (body) => (await judges()).takesAttachments((await offer()).tools, body),
  };
}

async function offerOf(config: Config, bypass: BypassSwitch): Promise<Offer> {
  const [{ toolsOf }, { LIBRARY }, { promptsOf }] = await Promise.all([
    import("../tools/toolsets.ts"),
    import("../mcp/resources/library.ts"),
    import("../mcp/prompts/prompts.ts"),
  ]);
  const query = querySettings(config);
  const prompts = promptsOf(namesOf(config.toolsets, query));
  const gate = () => ({ allowsBypass: bypass.isAllowed(), bound: callerApprovesOf(config) });
  return { tools: toolsOf(config.toolsets, { query, gate }), library: LIBRARY, prompts };
}

/** An empty one would be no secret. */
function resumeSecret({ CLAUDE_CODE_MCP_RESUME_SECRET: secret }: NodeJS.ProcessEnv): string | undefined {
  return secret === "" ? undefined : secret;
}

/** Loads what else the first calls would load but the Agent SDK: from then on the other files of this program may vanish. */
export async function preload(): Promise<void> {
  await Promise.all([
    import("../claude/check/folders.ts"),
    import("../claude/runtime.ts"),
    import("../config/confinement.ts"),
    import("../mcp/prompts/completion-answers.ts"),
    import("../mcp/prompts/prompt-answers.ts"),
    import("../mcp/prompts/prompts.ts"),
    import("../mcp/resources/library.ts"),
    import("../mcp/resources/resource-answers.ts"),
    import("../mcp/tasks/answer.ts"),
    import("../mcp/tasks/task-id.ts"),
    import("../mcp/tools.ts"),
    import("../mcp/watch/listen.ts"),
    import("../mcp/watch/session-watch.ts"),
    import("../mcp/watch/subscriptions.ts"),
    import("../security/key-file.ts"),
    import("../tools/toolsets.ts"),
  ]);
}
