import type { OverHttp, Running } from "./engine.ts";
import type { HttpParts, HttpServing, LocalHttp } from "./http.ts";
import { connectStore, storeLocation, storeNameOf, thisProcess, type StoreSettings } from "./store.ts";
import { parseApprovals } from "../config/approvals/approvals-flag.ts";
import { callerApprovesOf } from "../config/approvals/settings.ts";
import type { Config } from "../config/schema.ts";
import { ConfigError } from "../config/error.ts";
import { startFolder } from "../config/folders.ts";
import type { ApproverName } from "../domain/approvals/approver-name.ts";
import type { Engine } from "../engine/api.ts";
import type { Logger } from "../engine/ports.ts";
import { createAuditLog } from "../log/audit.ts";
import { createLogger } from "../log/logger.ts";
import { createMasker, type Masker } from "../log/mask.ts";
import { followingOf, lazy, type Offer, type ServerOptions } from "../mcp/server-options.ts";
import type { ServerFactory } from "../mcp/http.ts";
import { createMcpServer } from "../mcp/server.ts";
import { createStates, Unattended } from "../mcp/states.ts";
import { serveOverStdio } from "../mcp/stdio.ts";
import { waitLimits } from "../tools/arguments/wait-limits.ts";
import type { Audit } from "../tools/audit.ts";
import type { BypassSwitch, StartTask, ToolDeps } from "../tools/define.ts";
import { canAnswer, namesOf, sendsLogs, type ToolName } from "../tools/listed.ts";
import { ReportedTools } from "../tools/reported-tools.ts";
import { querySettings } from "../config/query.ts";
import { Readiness } from "./readiness.ts";

export interface AppSettings extends StoreSettings {
  config: Config;
  /** How deep this server is nested in sessions of servers like it. */
  depth: number;
  /** How this server was started: [command, ...args], in the spellings that a configuration may use. */
  ownCommands: readonly (readonly [string, ...string[]])[];
  info: { name: string; version: string };
  /** Served to the person at this machine, whatever the configuration says of HTTP. */
  local?: LocalHttp | undefined;
  /** The file that settings were read from. */
  configFile?: string | undefined;
  /** What approvers sign or log in with, by their names. */
  approverSecrets?: ReadonlyMap<ApproverName, string> | undefined;
  /** What `isolationOf` has found. */
  isolation?: readonly string[] | undefined;
}

export interface App {
  readonly log: Logger;
  /** Serves one MCP client on stdin and stdout. `onClose` is called when the client is gone. */
  serveStdio(onClose: () => void): void;
  /** Serves MCP over HTTP as configured, with our tools unless there is a `factory`. Throws ConfigError. */
  serveHttp(factory?: ServerFactory): Promise<Pick<HttpServing, "url" | "notify">>;
  /** Drains: what runs is recorded as interrupted, then all processes are ended. Safe to call again. */
  close(): Promise<void>;
}

/** What gives each Claude Code a pid namespace of its own, as configured; throws ConfigError where that cannot be had. */
export async function isolationOf({ processIsolation }: Config): Promise<readonly string[]> {
  if (processIsolation === "none") return [];
  const { pidNamespace } = await import("../claude/supervise/isolation.ts");
  return pidNamespace().catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    const advice = "Run the server as root, or install bubblewrap and allow user namespaces; or leave the setting out.";
    throw new ConfigError(`--process-isolation pid-namespace is not available here (${why}). ${advice}`, error);
  });
}

/** As variables, by whose names the masker knows what is secret. */
function secretsOf({ approverSecrets = new Map() }: AppSettings): Record<string, string> {
  return Object.fromEntries([...approverSecrets].map(([name, secret]) => [`${name}_SECRET`.toUpperCase(), secret]));
}

/** An empty one would be no secret. */
function resumeSecret({ CLAUDE_CODE_MCP_RESUME_SECRET: secret }: NodeJS.ProcessEnv): string | undefined {
  return secret === "" ? undefined : secret;
}

/** The one assembly. Nothing that a first `initialize` does not need is loaded before the first tool call. */
export function createApp(settings: AppSettings): App {
  const { config, environment } = settings;
  const masker = createMasker({ ...environment, ...secretsOf(settings) });
  const log = createLogger({ level: config.logLevel, masker });
  const reported = config.dynamicDescription ? new ReportedTools() : undefined;
  const toolNames = namesOf(config.toolsets, querySettings(config));
  const bypass = bypassSwitch(config.allowBypass, log);
  const audit = auditTo(config.auditLog, log, masker);
  const sessions = new Readiness<Running, OverHttp>(async (http) => {
    const [{ startEngine }, location] = await Promise.all([import("./engine.ts"), storeLocation(settings, log)]);
    const backend = await connectStore(location, log, http?.ownUrls);
    const self = { storeName: await storeNameOf(location, backend), process: await thisProcess() };
    return startEngine(settings, { backend, ...self, http, audit, log, masker, bypass, listed: toolNames });
  });
  const deps = lazy(async (): Promise<ToolDeps> => {
    const { engine } = await sessions.ready();
    const mask: ToolDeps["mask"] = (fields) => masker.fields(fields);
    return { ...toolSettings(settings, toolNames), engine, bypass, audit, mask, reported, log };
  });
  const serverOptions = serverOptionsOf(settings, { toolNames, reported, log, bypass, deps });
  const http = new Readiness<HttpServing, ServerFactory>(async (given) => {
    const { serveOverHttp } = await import("./http.ts");
    const { version } = settings.info;
    // What else is served has sessions of its own, if any.
    const { following } = serverOptions;
    const served = given
      ? { factory: given }
      : { factory: ((context) => createMcpServer(serverOptions, context)) satisfies ServerFactory, following };
    const { local } = settings;
    const allowsBypass = () => bypass.isAllowed();
    const parts = {
      config,
      environment,
      local,
      version,
      audit,
      log,
      allowsBypass,
      sessions,
      ...judgesOf(serverOptions),
    };
    const serving = await serveOverHttp({ ...parts, ...served });
    reported?.onChange(() => serving.notify.toolsChanged());
    return serving;
  });
  const close = lazy(async () => {
    // First that which starts sessions: what it has started is there then.
    const serving = await http.end();
    const running = await sessions.end();
    if (serving) await leave(serving, running?.engine, config);
    await end(running);
  });
  return {
    log,
    serveStdio: (onClose) => void serveOverStdio({ ...serverOptions, onClose }),
    serveHttp: async (factory) => http.ready(factory),
    close,
  };
}

/** What every client is served with. */
function serverOptionsOf(
  { config, info }: AppSettings,
  {
    bypass,
    ...given
  }: Pick<ServerOptions, "deps" | "reported" | "toolNames"> & Pick<ToolDeps, "bypass"> & { readonly log: Logger },
): ServerOptions {
  const offer = lazy(async () => offerOf(config, bypass));
  return {
    ...given,
    offer,
    following: followingOf({ ...given, offer }),
    info,
    limits: { maxWaitMs: config.maxWaitMs, allowsDiskResume: config.allowDiskResume },
    states: createStates(),
    unattended: new Unattended(given.log),
    tasks: config.tasks === "auto" ? { keptMs: config.retentionDays * DAY_MS } : undefined,
    logs: given.toolNames.some((name) => sendsLogs(name)),
  };
}

const DAY_MS = 86_400_000;

/** What tools learn of the configuration. */
function toolSettings(
  { config, environment }: AppSettings,
  listed: readonly ToolName[],
): Pick<
  ToolDeps,
  | "allows"
  | "callerApproves"
  | "callersAnswer"
  | "defaults"
  | "diskResume"
  | "folders"
  | "approvalChain"
  | "limits"
  | "listed"
  | "now"
  | "startTask"
> {
  return {
    listed,
    callersAnswer: canAnswer(listed),
    startTask: config.tasks === "auto" ? beginTask : undefined,
    approvalChain: parseApprovals(config.approvals).approvers,
    now: () => Date.now(),
    defaults: { cwd: startFolder },
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
function judgesOf({ offer }: ServerOptions): Pick<HttpParts, "scopeMissing" | "takesAttachments"> {
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

/** First `/readyz` fails, for load balancers; then running turns may end, and waiting calls get their results. */
async function leave(serving: HttpServing, engine: Engine | undefined, { drainMs }: Config): Promise<void> {
  serving.refuseNew();
  await engine?.stop(drainMs);
  await serving.close();
}

/** That turns were interrupted is written first; while processes end, approvers are told. */
async function end(started: Running | undefined): Promise<void> {
  await started?.engine.stop(0);
  await Promise.all([started?.engine.drain(), started?.approvers.close(APPROVERS_GRACE_MS)]);
}

/** What approvers have not been told when all else has ended has so long, ms. */
const APPROVERS_GRACE_MS = 2_000;

function bypassSwitch(allowed: boolean, log: Logger): BypassSwitch {
  let isAllowed = allowed;
  return {
    isAllowed: () => isAllowed,
    set(now, principal) {
      log.warn("audit: bypassPermissions switched", { allowed: now, before: isAllowed, principal });
      isAllowed = now;
    },
  };
}

function auditTo(file: string | undefined, log: Logger, masker: Masker): Audit | undefined {
  if (file === undefined) return undefined;
  const onFault = (error: unknown) => log.error("the audit log cannot be written", { file, error: String(error) });
  return createAuditLog({ file, masker, onFault });
}
