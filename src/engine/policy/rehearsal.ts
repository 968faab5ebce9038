import { z } from "zod";
import { MASKED, requestOf, type StoredEvent } from "../../domain/event.ts";
import { JsonObject } from "../../domain/json.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { PermissionMode, PermissionRequest } from "../../domain/permission.ts";
import { VERIFICATION_TOOL } from "../../domain/verification.ts";
import { isFileTool, namedPaths } from "../../security/file-tools.ts";
import { normalPath } from "../../security/normal-path.ts";
import { judgeCommands } from "./judge-commands.ts";
import { judge, type Rules } from "./rules.ts";

/**
 * Replays the log of a session against other rules: its requests, and its tool calls without a request. Pure: reads nothing but
 * the events. Remembered answers play no part, because a request that one settled was asked as far as rules decide.
 */

/** Decision of the rules. `unasked`: Claude Code made no request and let the tool run. */
export type Route = "allowed" | "asked" | "denied" | "unasked";

/** Recorded decision. */
export interface Before {
  readonly route: Route;
  /** Final answer to an asked request; absent while the request is open. */
  readonly answer?: "allow" | "deny";
  /** Source of the decision: `rule`, an approver, `timeout`, ..., `remembered`, or `claude` for Claude Code itself. */
  readonly by: string;
  readonly rule?: string;
}

/** Decision under the other rules. `unjudged`: the log does not hold what the decision depends on. */
export interface After {
  readonly route: Route | "unjudged";
  readonly rule?: string;
  /** Reason why the rule cannot be checked against the command, which is asked therefore. */
  readonly unclear?: string;
}

export interface Replayed {
  /** `call`: a tool call without a request. */
  readonly kind: "call" | "request";
  readonly eventId: number;
  readonly at: number;
  readonly toolName: string;
  readonly input: JsonObject;
  readonly before: Before;
  readonly after: After;
}

export interface ReplayedSession {
  /** Options of the session; its own rules count for commands of verifications. */
  readonly spec: Pick<SessionOptions, "allowedTools" | "cwd" | "disallowedTools">;
  /** Allow rules that the session began under; `undefined` if unknown. */
  readonly allowRules: readonly string[] | undefined;
  /** Earlier events are passed over, ms since the epoch. */
  readonly since: number;
}

export async function* rehearse(
  log: AsyncIterable<StoredEvent>,
  session: ReplayedSession,
  rules: Rules,
): AsyncGenerator<Replayed> {
  const replay = new Replay(session, rules);
  for await (const event of log) yield* replay.take(event);
  yield* replay.end();
}

export function isChanged({ after, before }: Replayed): boolean {
  return after.route !== "unjudged" && after.route !== before.route;
}

interface Recorded {
  readonly eventId: number;
  readonly at: number;
}

/** Tool call without a request so far, and without a result. */
interface Call extends Recorded {
  readonly toolName: string;
  readonly input: JsonObject;
  isDenied: boolean;
}

interface Asked extends Recorded {
  readonly request: PermissionRequest;
}

type Started = Extract<StoredEvent, { type: "verification.started" }>["data"];
type Answer = Extract<StoredEvent, { type: "permission.answered" | "question.answered" }>["data"];

const CallBlock = z.object({ type: z.literal("tool_use"), id: z.string(), name: z.string(), input: JsonObject });
const ResultBlock = z.object({ type: z.literal("tool_result"), tool_use_id: z.string() });
const Spoken = z.object({ message: z.object({ content: z.array(z.unknown()) }) });
/** Note beside a result in a message: Claude Code did not run the tool. */
const ResultMeta = z.object({ id: z.string(), permission_decision: z.object({ decision: z.literal("reject") }) });
const Denial = z.object({ tool_use_id: z.string() });

/** Keeps what waits for its end: open requests, and calls without a result. */
class Replay {
  readonly #session: ReplayedSession;
  readonly #rules: Rules;
  readonly #requests = new Map<string, Asked>();
  readonly #calls = new Map<string, Call>();
  /** Ids of the calls without a result that a request was seen for. */
  readonly #asked = new Set<string>();
  /** Begins with the id of the last turn whose verification counts already, as the id of a request for its commands does. */
  #verified: string | undefined;

  constructor(session: ReplayedSession, rules: Rules) {
    this.#session = session;
    this.#rules = rules;
  }

  *take(event: StoredEvent): Generator<Replayed> {
    const { data, type } = event;
    const request = requestOf(event);
    if (request) this.#onAsked(event, request);
    if (type === "permission.answered" || type === "question.answered") yield* this.#onAnswered(data);
    if (type === "notice" && data.kind === "denial") this.#deny(Denial.safeParse(data.details).data?.tool_use_id);
    if (type === "message") yield* this.#onMessage(event, data.message);
    if (type === "process.exited") yield* this.#endCalls();
    if (type === "verification.started") yield* this.#onVerification(event, data);
  }

  *end(): Generator<Replayed> {
    yield* this.#endCalls();
    for (const asked of this.#requests.values()) yield this.#replayRequest(asked, undefined);
    this.#requests.clear();
  }

  /** Replays commands that ran without a request in their turn, which rules, options or the permission mode allowed. */
  *#onVerification({ at, id: eventId }: StoredEvent, { commands, turnId }: Started): Generator<Replayed> {
    if (at < this.#session.since || this.#verified?.startsWith(`${turnId}.`)) return;
    this.#verified = `${turnId}.`;
    const input = { commands };
    const call = { eventId, at, toolName: VERIFICATION_TOOL, input, isDenied: false };
    yield this.#replayCall(call);
  }

  #onAsked({ at, id: eventId }: StoredEvent, request: PermissionRequest): void {
    if (request.toolName === VERIFICATION_TOOL) this.#verified = request.requestId;
    this.#calls.delete(request.toolUseId);
    this.#asked.add(request.toolUseId);
    if (at >= this.#session.since) this.#requests.set(request.requestId, { eventId, at, request });
  }

  *#onAnswered(answer: Answer): Generator<Replayed> {
    const asked = this.#requests.get(answer.requestId);
    this.#requests.delete(answer.requestId);
    if (asked) yield this.#replayRequest(asked, answer);
  }

  *#onMessage({ at, id: eventId }: StoredEvent, message: JsonObject): Generator<Replayed> {
    const { type } = message;
    if (type !== "assistant" && type !== "user") return;
    const { message: said } = Spoken.safeParse(message).data ?? { message: { content: [] } };
    if (type === "user") for (const id of rejectedIn(message)) this.#deny(id);
    for (const block of said.content) {
      const call = type === "assistant" ? CallBlock.safeParse(block).data : undefined;
      if (call && at >= this.#session.since && !this.#asked.has(call.id))
        this.#calls.set(call.id, { eventId, at, toolName: call.name, input: call.input, isDenied: false });
      const result = type === "user" ? ResultBlock.safeParse(block).data : undefined;
      if (result) yield* this.#endCall(result.tool_use_id);
    }
  }

  #deny(id: string | undefined): void {
    const call = this.#calls.get(id ?? "");
    if (call) call.isDenied = true;
  }

  *#endCall(id: string): Generator<Replayed> {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    this.#asked.delete(id);
    if (call) yield this.#replayCall(call);
  }

  *#endCalls(): Generator<Replayed> {
    for (const id of this.#calls.keys()) yield* this.#endCall(id);
    this.#asked.clear();
  }

  #replayRequest({ at, eventId, request }: Asked, answer: Answer | undefined): Replayed {
    const { input, toolName } = request;
    const before = recordedDecision(request, answer, this.#session.allowRules);
    const after = decisionOn(request, this.#rules, this.#session.spec);
    return { kind: "request", eventId, at, toolName, input, before, after };
  }

  /** Deny and ask rules alone concern a call that was not asked. */
  #replayCall({ at, eventId, input, isDenied, toolName }: Call): Replayed {
    const { spec } = this.#session;
    const request = asRequest(toolName, input, { cwd: spec.cwd, home: this.#rules.home });
    // The mode lets commands run that no rule speaks of, as they did.
    const decided = decisionOn(request, this.#rules, spec, "bypassPermissions");
    const { route } = decided;
    const isFree = route === "allowed" || (route === "asked" && decided.rule === undefined);
    const before: Before = { route: isDenied ? "denied" : "unasked", by: "claude" };
    // A call that Claude Code denied by rules may be asked or run without them: the log does not say.
    const after: After = isDenied && route !== "denied" ? UNJUDGED : isFree ? { route: "unasked" } : decided;
    return { kind: "call", eventId, at, toolName, input, before, after };
  }
}

const UNJUDGED: After = { route: "unjudged" };

function rejectedIn({ tool_result_meta: metas }: JsonObject): string[] {
  const list: unknown[] = Array.isArray(metas) ? metas : [];
  return list.flatMap((meta) => ResultMeta.safeParse(meta).data?.id ?? []);
}

/** Returns the request that Claude Code would have made of a call. Links are not followed: they may lead elsewhere by now. */
function asRequest(
  toolName: string,
  input: JsonObject,
  folders: { readonly cwd: string; readonly home: string },
): PermissionRequest {
  const named = isFileTool(toolName)
    ? namedPaths(toolName, input)?.map((path) => normalPath(path, folders))
    : undefined;
  const paths = named?.filter((path) => path !== undefined);
  return {
    requestId: "",
    kind: toolName === "AskUserQuestion" ? "question" : "permission",
    toolName,
    input,
    toolUseId: "",
    ...(paths && paths.length > 0 && { paths }),
  };
}

/** Decides as `findRuling` and `openRequest` do, without remembered answers. */
function decisionOn(
  request: PermissionRequest,
  rules: Rules,
  spec: ReplayedSession["spec"],
  mode: PermissionMode = "default",
): After {
  if (request.refused !== undefined) return { route: "denied" };
  if (isMasked(request)) return UNJUDGED;
  const commands = commandsOf(request);
  const verdict = commands
    ? judgeCommands({ commands: commands.map(asJudged), rules, own: spec, mode, cwd: spec.cwd })
    : judge(request, rules, spec.cwd);
  if (!verdict) return { route: "asked" };
  const { behavior } = verdict;
  const { rule, unclear }: Pick<After, "rule" | "unclear"> = verdict;
  return { route: ROUTES[behavior], ...(rule !== undefined && { rule }), ...(unclear !== undefined && { unclear }) };
}

const Commands = z.object({ commands: z.array(z.string()) });

/** Returns the commands of a verification. */
function commandsOf({ input, toolName }: PermissionRequest): readonly string[] | undefined {
  return toolName === VERIFICATION_TOOL ? Commands.safeParse(input).data?.commands : undefined;
}

function asJudged(command: string) {
  return { command, judged: {} };
}

const ROUTES = { allow: "allowed", ask: "asked", deny: "denied" } as const;

/** Fields that rules with content are matched against. */
const JUDGED_FIELDS = "command file_path notebook_path path pattern skill subagent_type url".split(" ");

/** True if a secret was masked where rules look. */
function isMasked(request: PermissionRequest): boolean {
  const { input, paths = [] } = request;
  const judged = [...paths, ...(commandsOf(request) ?? []), ...JUDGED_FIELDS.map((field) => input[field])];
  return judged.some((value) => typeof value === "string" && value.includes(MASKED));
}

/** `allowRules`: rules of the operator at the time. Any other rule that allowed a request was a remembered answer. */
function recordedDecision(
  { refused }: PermissionRequest,
  answer: Answer | undefined,
  allowRules: readonly string[] | undefined,
): Before {
  if (refused !== undefined) return { route: "denied", by: "server" };
  if (!answer) return { route: "asked", by: "" };
  const { behavior, by, rule } = answer;
  // Without a rule, the request was denied for want of an approver.
  if (by !== "rule" || rule === undefined) return { route: "asked", answer: behavior, by };
  if (behavior === "deny") return { route: "denied", by, rule };
  const isRemembered = allowRules?.includes(rule) === false;
  return isRemembered ? { route: "asked", answer: behavior, by: "remembered", rule } : { route: "allowed", by, rule };
}
