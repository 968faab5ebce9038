import type { Bound } from "../domain/approvals/risk.ts";
import type { z } from "zod";
import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Caller, Principal, Scope } from "../domain/principal.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import { requireScope } from "../engine/actions/scope.ts";
import type { Engine } from "../engine/api.ts";
import type { Logger } from "../engine/ports.ts";
import { ADVERTISED_OUTPUT, advertiseInput, type Advertised } from "./advertise.ts";
import type { FormAnswer, NeedsInput } from "./elicitation/needs-input.ts";
import { entryOf, type Audit } from "./audit.ts";
import type { Leaving } from "./leaving.ts";
import type { FirstAnswer } from "./first-answer.ts";
import { isAgentTool, type ToolName } from "./listed.ts";
import { parseArguments } from "./arguments/parse.ts";
import type { DiskResume } from "./resume-token.ts";
import type { ReportedTools } from "./reported-tools.ts";
import { replyWith, replyWithError, type ToolReply, type TaskHead } from "./errors.ts";
import { scopeOf, type ToolScope } from "./scope.ts";

/** All hints are stated, never left to a client's defaults: some clients decide by them whether a tool may run. */
export interface Annotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

export interface ToolLimits {
  /** The longest that a call may block, ms. */
  readonly maxWaitMs: number;
  /** The client bears a call for as long as it may block: one that waits is better than many that look. */
  readonly prefersOneWait?: boolean;
  /** The operator allows sessions to be resumed from disk (`--allow-disk-resume`). */
  readonly allowsDiskResume?: boolean;
}

/** The operator's gate to permission mode bypassPermissions. */
export interface BypassSwitch {
  isAllowed(): boolean;
  /** Goes for every new turn of this server; each switch is a line of the server's log, whatever is logged of calls. */
  set(allowed: boolean, principal: Principal): void;
}

/** Of the levels of MCP, those that are used. */
export type LogLevel = "debug" | "info" | "error";

/** The prompt as a task; undefined where the log does not have it. `cursor` is where the events of the prompt begin. */
export type StartTask = (
  session: SessionLog,
  begun: { readonly cursor: number; readonly warnings: readonly string[] },
) => Promise<TaskHead | undefined>;

interface SessionLog {
  readonly id: string;
  read(from: number, limit: number): Promise<readonly StoredEvent[]>;
}

/** What every tool works with; the same for all calls. */
export interface ToolDeps {
  readonly engine: Engine;
  readonly defaults: { readonly cwd: () => string };
  readonly limits: ToolLimits;
  /** The most that any caller may approve here. */
  readonly callerApproves: Bound;
  readonly diskResume: DiskResume;
  /** Folders that a path which is being typed may go on to, of those that the principal's sessions may work in. */
  readonly folders: (principal: Principal, typed: string) => Promise<readonly string[]>;
  /** What the operator allows callers to see. */
  readonly allows: { readonly sensitiveDetails: boolean };
  readonly bypass: BypassSwitch;
  /** Who is asked what Claude Code asks, in this order. */
  readonly approvalChain: readonly ApproverName[];
  /** The tools that callers have. */
  readonly listed: readonly ToolName[];
  /** Whether claude_code_check is listed: then callers can answer requests. */
  readonly callersAnswer: boolean;
  /** Makes what is begun a task for clients that know such; undefined where tasks are off. */
  readonly startTask: StartTask | undefined;
  /** A copy without what looks like a secret, for what a caller only reads. */
  readonly mask: (fields: JsonObject) => JsonObject;
  /** Writes the audit log; undefined without one. */
  readonly audit: Audit | undefined;
  /** Observes what is read; undefined without observers. */
  readonly reported: ReportedTools | undefined;
  readonly log: Pick<Logger, "error" | "info">;
  /** Given where clients find sessions that went on without them. */
  readonly first?: FirstAnswer | undefined;
  /** Told of the client of each call before the call begins. */
  onCall?(client: ToolCall["client"]): void;
  /** The server runs on when a client is gone (a daemon). */
  readonly outlivesClients: boolean;
  /** ms since the epoch. */
  now(): number;
}

/** One call: who makes it, and what the client at the other end can take while it runs. */
export interface ToolCall extends Caller {
  /** Ends the wait, never the turn. */
  readonly signal: AbortSignal;
  readonly client: {
    /** How it shows forms, if it does: while the call runs, whose time at the client goes on, or between two requests. */
    readonly elicitation: false | "during" | "between";
    readonly tasks: boolean;
    /** Set where its user has started it on this machine: on stdio. */
    readonly isLocal?: boolean;
    /** What ends with the client; missing where it is not known when the client is gone. */
    readonly leaving?: Leaving | undefined;
    /** The name by which it introduces itself, shortened. */
    readonly name?: string | undefined;
    /** No person reads its forms: no more are sent. */
    readonly noteUnattended?: () => void;
    /** Given where the client takes log notifications; resolves when this one is on its way. */
    readonly log?: (level: LogLevel, data: unknown, logger?: string) => Promise<void>;
    /** Given where the client has asked for log notifications: a line of what is new in the session it waits for. */
    readonly news?: (line: string) => void;
    /** Given where the client has asked for it. */
    readonly progress?: (message: string) => void;
  };
  /** What the round before of this call has left behind; of this server and this principal, but not surely of this tool. */
  readonly resumeState: unknown;
  /** What came of its forms, by key, */
  readonly inputResponses: Readonly<Record<string, FormAnswer>>;
  /** and when, ms since the epoch; without it now. */
  readonly answeredAt?: number;
}

/** What a handler comes to: an answer, or forms, after which the call comes back. */
export type ToolOutcome = Answered | { readonly needsInput: NeedsInput };

export interface Answered {
  readonly answer: JsonObject;
  /** What was begun goes on as a task that the client follows; the answer says what there was then. */
  readonly task?: TaskHead;
  /** The answer in words, in place of its JSON: a block each. Together they say all that a caller needs of it. */
  readonly words?: readonly [string, ...string[]];
  /** The work did not end well, and the answer says how far it came. */
  readonly isError?: boolean;
  /** What came of the work, for the audit log; without it what was asked for was done. */
  readonly outcome?: string;
}

interface ToolDefinition<I extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** A function where it says how something stands that can change. */
  readonly description: string | (() => string);
  readonly input: I;
  /** Names of `input` that are accepted but not offered. */
  readonly unlisted?: readonly string[];
  /** Names of `input` that are offered only with `--allow-disk-resume`. */
  readonly forDiskResume?: readonly string[];
  /** Offered in place of what would be derived from `input`, by name. */
  readonly advertised?: Advertised;
  readonly annotations: Annotations;
  /** What a caller needs for it; of a tool with actions, for each of them. */
  readonly scope: Scope | (z.output<I> extends { action: infer A extends string } ? Readonly<Record<A, Scope>> : never);
  /** The call lasts as long as its turn: it is written down when it begins (blocking/record.ts) and when it ends. */
  readonly isQuery?: true;
  /** Protocol metadata of the tool itself. */
  readonly meta?: JsonObject;
  handle(args: z.output<I>, call: ToolCall, deps: ToolDeps): Promise<ToolOutcome>;
}

/** A tool as a value: what is listed of it, and how it is called. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly annotations: Annotations;
  readonly scope: ToolScope;
  readonly meta: JsonObject | undefined;
  /** Schema by which the arguments are parsed, `unlisted` names included. */
  readonly input: z.ZodObject;
  readonly isQuery: boolean;
  /** As clients are shown it; `bounded` with the bounds of numbers, as the docs have it. */
  inputSchema(limits: ToolLimits, bounded?: boolean): JsonObject;
  outputSchema(): JsonObject;
  /** Parses the arguments and handles the call; throws what `runTool` answers for. */
  invoke(raw: unknown, call: ToolCall, deps: ToolDeps): Promise<ToolOutcome>;
}

export function defineTool<I extends z.ZodObject>(definition: ToolDefinition<I>): Tool {
  const { name, title, description, annotations, scope, meta, input } = definition;
  const { unlisted = [], forDiskResume = [], advertised = {}, isQuery = false } = definition;
  const hidden = [...unlisted, ...forDiskResume];
  const unlistedWith = ({ allowsDiskResume }: ToolLimits) => (allowsDiskResume ? unlisted : hidden);
  return {
    name,
    title,
    get description() {
      return typeof description === "function" ? description() : description;
    },
    annotations,
    scope,
    meta,
    input,
    isQuery,
    inputSchema: (limits, bounded) =>
      advertiseInput(input, { unlisted: unlistedWith(limits), advertised, limits, bounded }),
    outputSchema: () => ADVERTISED_OUTPUT,
    invoke: async (raw, call, deps) => definition.handle(parseArguments(input, raw, hidden), call, deps),
  };
}

/** Runs one call to its reply, or to the next form. It is taken down before anything of it is sent. */
export async function runTool(
  tool: Tool,
  raw: unknown,
  call: ToolCall,
  deps: ToolDeps,
): Promise<ToolReply | { readonly needsInput: NeedsInput }> {
  const reply = await replyTo(tool, raw, call, deps);
  // Its turn goes on behind the form.
  if (tool.isQuery && "needsInput" in reply) return reply;
  const known =
    "needsInput" in reply ? { isError: false, structured: { sessionId: reply.needsInput.sessionId } } : reply;
  // Once: what it has done, it had done before its first form. A client need not come back with that.
  const isNews = call.resumeState === undefined || known.isError || tool.isQuery;
  const entry = entryOf({ call, raw, tool: tool.name, scope: scopeOf(tool, raw) }, known);
  if (entry && isNews) deps.audit?.(entry);
  if (entry && tool.isQuery) deps.log.info("query ended", entry);
  return reply;
}

/** Whatever is thrown becomes an error that the caller can read. */
async function replyTo(tool: Tool, raw: unknown, call: ToolCall, deps: ToolDeps): ReturnType<typeof runTool> {
  try {
    // Before anything else: what a caller may not do is not even looked at.
    requireScope(call, scopeOf(tool, raw), whatOf(tool, raw));
    deps.onCall?.(call.client);
    const own = { ...deps, engine: deps.engine.forCaller(call) };
    const outcome = await tool.invoke(raw, call, own);
    if ("needsInput" in outcome) return outcome;
    if (!deps.first || !isAgentTool(tool.name)) return replyWith(outcome);
    return replyWith({ ...outcome, answer: await deps.first.addTo(outcome.answer, raw, call, own.engine) });
  } catch (error) {
    // The answer to a cancelled call is not read, and a cancellation is no error.
    const report = call.signal.aborted
      ? () => undefined
      : (id: string, fault: unknown) => deps.log.error("a tool failed", { fault: id, tool: tool.name, error: fault });
    return replyWithError(error, report, { sessionId: sessionIdOf(raw), listed: deps.listed });
  }
}

function sessionIdOf(raw: unknown): string | undefined {
  const named = typeof raw === "object" && raw !== null && "sessionId" in raw ? raw.sessionId : undefined;
  return typeof named === "string" && named.length <= 100 ? named : undefined;
}

/** The tool, and the action of it that was named where there is such a one. */
function whatOf({ name, scope }: Tool, raw: unknown): string {
  const action = typeof raw === "object" && raw !== null && "action" in raw ? raw.action : undefined;
  const isKnown = typeof scope === "object" && typeof action === "string" && Object.hasOwn(scope, action);
  return isKnown ? `${name} (${action})` : name;
}
