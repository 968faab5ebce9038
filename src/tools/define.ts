import type { Bound } from "../domain/approvals/risk.ts";
import type { z } from "zod";
import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Caller, Principal, Scope } from "../domain/principal.ts";
import type { Profiles } from "../domain/profile.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import { requireScope } from "../engine/actions/scope.ts";
import type { Engine } from "../engine/api.ts";
import type { Logger } from "../engine/ports.ts";
import type { ToolLimits } from "./arguments/wait-limits.ts";
import { ADVERTISED_OUTPUT, deriveInputSchema, type Advertised } from "./input-schema.ts";
import type { FormAnswer, NeedsInput, RequestLinks } from "./elicitation/needs-input.ts";
import { entryOf, type Audit } from "./audit.ts";
import type { ClientCleanup } from "./client-cleanup.ts";
import type { ConnectionNote } from "./connection-note.ts";
import { isAgentTool, type ToolName } from "./tool-names.ts";
import { parseArguments } from "./arguments/parse.ts";
import type { DiskResume } from "./resume-token.ts";
import type { DynamicDescription } from "./dynamic-description.ts";
import { replyWith, replyWithError, type ToolReply, type TaskHead } from "./errors.ts";
import { requiredScope, type ToolScope } from "./scope.ts";

/** Hints by which some clients decide whether a tool may run are set explicitly. */
export interface Annotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  /** Left out for false, the default of MCP, because every byte is in the context of every model. */
  readonly idempotentHint?: true;
  readonly openWorldHint: boolean;
}

/** Gate to permission mode `bypassPermissions`, set by the operator. */
export interface BypassSwitch {
  isAllowed(): boolean;
  /** Applies to every new turn of this server. Each switch is logged, at every log level for calls. */
  set(allowed: boolean, principal: Principal): void;
}

/** Levels of MCP in use here. */
export type LogLevel = "debug" | "info" | "error";

/** Started prompt whose events begin at `cursor`. */
interface BegunWork {
  readonly cursor: number;
  readonly warnings: readonly string[];
  /** Arguments that shape the answer, kept in the id of the task. */
  readonly shape?: JsonObject;
}

/** Makes a task of the prompt at `cursor`; `undefined` if the log does not have the prompt. */
export type StartTask = (session: SessionLog, begun: BegunWork) => Promise<TaskHead | undefined>;

interface SessionLog {
  readonly id: string;
  read(from: number, limit: number): Promise<readonly StoredEvent[]>;
}

/** Dependencies of every tool, shared by all calls. */
export interface ToolDeps {
  readonly engine: Engine;
  readonly defaults: { readonly cwd: () => string };
  readonly limits: ToolLimits;
  /** Maximum risk that any caller may approve here. */
  readonly callerApproves: Bound;
  readonly diskResume: DiskResume;
  /** Returns the profiles that a principal may use, by name. */
  readonly profilesOf: (principal: Principal) => Profiles;
  /** Completes a typed path: subfolders within the folders allowed to the principal's sessions. */
  readonly folders: (principal: Principal, typed: string) => Promise<readonly string[]>;
  /** Details that the operator allows callers to see. */
  readonly allows: { readonly sensitiveDetails: boolean };
  readonly bypass: BypassSwitch;
  /** Approvers in the order in which they are asked. */
  readonly approvalChain: readonly ApproverName[];
  /** Tools listed to callers. */
  readonly listed: readonly ToolName[];
  /** True if `claude_code_check` is listed, so that callers can answer requests. */
  readonly callersAnswer: boolean;
  /** Makes a started prompt a task, for clients with tasks; `undefined` if tasks are off. */
  readonly startTask: StartTask | undefined;
  /** Links to pages of single requests; `undefined` if no console is served to clients of this server. */
  readonly links?: RequestLinks | undefined;
  /** Returns a copy with secrets masked, for answers that only inform. */
  readonly mask: (fields: JsonObject) => JsonObject;
  /** Writes the audit log; `undefined` without `--audit-log`. */
  readonly audit: Audit | undefined;
  /** Adds the tools reported by Claude Code to the description of `claude_code`, with `--dynamic-description`. */
  readonly reported: DynamicDescription | undefined;
  readonly log: Pick<Logger, "error" | "info">;
  /** Set in a daemon, and if no daemon could be started: clients are then told in their first answer. */
  readonly first?: ConnectionNote | undefined;
  /** Called with the client of each call, before the call begins. */
  readonly onCall?: ((client: ToolCall["client"]) => void) | undefined;
  /** True in a daemon: the server continues after its clients. */
  readonly outlivesClients: boolean;
  /** Returns the time, ms since the epoch. */
  now(): number;
}

/** A call: its caller, and the abilities of the client while the call runs. */
export interface ToolCall extends Caller {
  /** Aborts the wait, never the turn. */
  readonly signal: AbortSignal;
  readonly client: {
    /**
     * "during": forms are shown while the call runs, so the client's own time limit continues. "between": between two requests.
     */
    readonly elicitation: false | "during" | "between";
    readonly opensUrls?: boolean;
    readonly tasks: boolean;
    /** True on stdio: the user has started the client on this machine. */
    readonly isLocal?: boolean;
    /** Work to end with the client; `undefined` if the server cannot notice the client's end. */
    readonly leaving?: ClientCleanup | undefined;
    /** Name from the client's `clientInfo`, shortened. */
    readonly name?: string | undefined;
    /** Records that no person reads forms at this client, so that no further forms are sent. */
    readonly noteUnattended?: () => void;
    /** Set if the client accepts log notifications. Resolves after the notification is written. */
    readonly log?: (level: LogLevel, data: unknown, logger?: string) => Promise<void>;
    /** Set if the client has asked for log notifications. Sends a line of news of an awaited session. */
    readonly news?: (line: string) => void;
    /** Set if the call has a progress token. */
    readonly progress?: (message: string) => void;
  };
  /**
   * State kept from the previous round of this call. Belongs to this server and this principal, but perhaps to another tool.
   */
  readonly resumeState: unknown;
  /** Form answers, by key of the form. */
  readonly inputResponses: Readonly<Record<string, FormAnswer>>;
  /** Time of the form answers, ms since the epoch. Default: now. */
  readonly answeredAt?: number;
}

/** Result of a handler: an answer, or forms, after which the client repeats the call. */
export type ToolOutcome = Answered | { readonly needsInput: NeedsInput };

/** Task whose turn has ended. */
export interface EndedTask {
  readonly sessionId: string;
  /** First event of the prompt. */
  readonly cursor: number;
  /** Event with the end of the turn. */
  readonly endEventId: number;
  /** `BegunWork.shape` as returned by the client. */
  readonly shape: JsonObject;
}

export interface Answered {
  readonly answer: JsonObject;
  /** Task in which the work continues. `answer` shows the state at its start. */
  readonly task?: TaskHead;
  /** Rest of the call of a query that continues as `task`: runs after the answer, without the client. */
  readonly rest?: (alone: ToolCall) => Promise<ToolOutcome>;
  /** Text blocks in place of the JSON of `answer`. Together they include everything a caller needs. */
  readonly words?: readonly [string, ...string[]];
  /** True if the work failed; `answer` shows the progress made. */
  readonly isError?: boolean;
  /** Outcome for the audit log. Default: "ok". */
  readonly outcome?: string;
}

interface ToolDefinition<I extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** A function if the text depends on the client, or on a state that can change. */
  readonly description: string | ((limits: ToolLimits) => string);
  readonly input: I;
  /** Parameters of `input` accepted but not listed. */
  readonly unlisted?: readonly string[];
  /** Parameters of `input` listed only with `--allow-disk-resume`. */
  readonly forDiskResume?: readonly string[];
  /** Schemas listed in place of those derived from `input`, by parameter name. */
  readonly advertised?: Advertised;
  readonly annotations: Annotations;
  /** Scope required by the tool, or by each of its actions. */
  readonly scope: Scope | (z.output<I> extends { action: infer A extends string } ? Readonly<Record<A, Scope>> : never);
  /**
   * Set if the call lasts as long as the turn. Its audit entries are written at the begin (`blocking/outcome.ts`) and at the
   * end.
   */
  readonly isQuery?: true;
  /** `_meta` of the listed tool. */
  readonly meta?: JsonObject;
  /** Builds the answer of `handle` from the log, for a call that went on as a task. Default: the answer of `claude_code`. */
  readonly answerTask?: (ended: EndedTask, call: ToolCall, deps: ToolDeps) => Promise<Answered>;
  handle(args: z.output<I>, call: ToolCall, deps: ToolDeps): Promise<ToolOutcome>;
}

/** Tool as a value: its listing and its handler. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly annotations: Annotations;
  readonly scope: ToolScope;
  readonly meta: JsonObject | undefined;
  /** Schema for parsing arguments, unlisted parameters included. */
  readonly input: z.ZodObject;
  readonly isQuery: boolean;
  readonly answerTask: ToolDefinition<z.ZodObject>["answerTask"] | undefined;
  /** Returns the description for clients with `limits`. */
  describe(limits: ToolLimits): string;
  /** Returns the schema as listed; with `bounded`, includes bounds of numbers, for the docs. */
  inputSchema(limits: ToolLimits, bounded?: boolean): JsonObject;
  outputSchema(): JsonObject;
  /** Parses the arguments and handles the call. `runTool` turns everything thrown into a reply. */
  invoke(raw: unknown, call: ToolCall, deps: ToolDeps): Promise<ToolOutcome>;
}

export function defineTool<I extends z.ZodObject>(definition: ToolDefinition<I>): Tool {
  const { name, title, description, annotations, answerTask, scope, meta, input } = definition;
  const { unlisted = [], forDiskResume = [], advertised = {}, isQuery = false } = definition;
  const hidden = [...unlisted, ...forDiskResume];
  const unlistedWith = ({ allowsDiskResume }: ToolLimits) => (allowsDiskResume ? unlisted : hidden);
  return {
    name,
    title,
    annotations,
    answerTask,
    scope,
    meta,
    input,
    isQuery,
    describe: (limits) => (typeof description === "function" ? description(limits) : description),
    inputSchema: (limits, bounded) =>
      deriveInputSchema(input, { unlisted: unlistedWith(limits), advertised, limits, bounded }),
    outputSchema: () => ADVERTISED_OUTPUT,
    invoke: async (raw, call, deps) => definition.handle(parseArguments(input, raw, hidden), call, deps),
  };
}

/** Runs one call to its reply, or to the next form. Writes the audit entry before any part of the reply is sent. */
export async function runTool(
  tool: Tool,
  raw: unknown,
  call: ToolCall,
  deps: ToolDeps,
): Promise<ToolReply | { readonly needsInput: NeedsInput }> {
  const reply = await replyToCall(tool, raw, call, deps);
  // The turn continues behind the form or as a task, so the audit entry of the end comes later.
  if (tool.isQuery && ("needsInput" in reply || reply.task)) return reply;
  const known =
    "needsInput" in reply ? { isError: false, structured: { sessionId: reply.needsInput.sessionId } } : reply;
  // Only in the first round: the work was done before the first form, and a client may never return with an answer.
  const isNews = call.resumeState === undefined || known.isError || tool.isQuery;
  const entry = entryOf({ call, raw, tool: tool.name, scope: requiredScope(tool, raw) }, known);
  if (entry && isNews) deps.audit?.(entry);
  if (entry && tool.isQuery) deps.log.info("query ended", entry);
  return reply;
}

/** Turns every error into a reply readable by the caller. */
async function replyToCall(tool: Tool, raw: unknown, call: ToolCall, deps: ToolDeps): ReturnType<typeof runTool> {
  try {
    // First, so that nothing of a call without permission is processed.
    requireScope(call, requiredScope(tool, raw), describeCall(tool, raw));
    deps.onCall?.(call.client);
    const own = { ...deps, engine: deps.engine.forCaller(call) };
    const outcome = await tool.invoke(raw, call, own);
    if ("needsInput" in outcome) return outcome;
    const { rest } = outcome;
    if (rest) {
      const going = { ...tool, invoke: async (_: unknown, alone: ToolCall) => rest(alone) };
      void runTool(going, raw, withoutClient(call), { ...deps, onCall: undefined });
    }
    if (!deps.first || !isAgentTool(tool.name)) return replyWith(outcome);
    return replyWith({ ...outcome, answer: await deps.first.addTo(outcome.answer, raw, call, own.engine) });
  } catch (error) {
    // The client discards the answer to a cancelled call, and a cancellation is not an error.
    const report = call.signal.aborted
      ? () => undefined
      : (id: string, fault: unknown) => deps.log.error("a tool failed", { fault: id, tool: tool.name, error: fault });
    return replyWithError(error, report, { sessionId: sessionIdOf(raw), listed: deps.listed });
  }
}

/** Returns `call` as it goes on when the client has its task: nothing ends it, and requests are left to the task. */
function withoutClient(call: ToolCall): ToolCall {
  return {
    ...call,
    signal: new AbortController().signal,
    client: { elicitation: false, tasks: true, name: call.client.name },
    resumeState: undefined,
    inputResponses: {},
  };
}

function sessionIdOf(raw: unknown): string | undefined {
  const named = typeof raw === "object" && raw !== null && "sessionId" in raw ? raw.sessionId : undefined;
  return typeof named === "string" && named.length <= 100 ? named : undefined;
}

/** Returns the name of the tool, with a known `action` in parentheses. */
function describeCall({ name, scope }: Tool, raw: unknown): string {
  const action = typeof raw === "object" && raw !== null && "action" in raw ? raw.action : undefined;
  const isKnown = typeof scope === "object" && typeof action === "string" && Object.hasOwn(scope, action);
  return isKnown ? `${name} (${action})` : name;
}
