import { createHash, randomUUID } from "node:crypto";
import { CALLER } from "../../domain/approvals/answer-source.ts";
import { Answers, withAnswers } from "../../domain/approvals/questions.ts";
import { rulesToRemember, type Remember } from "../../domain/approvals/remembered.ts";
import type { Command, CommandOf } from "../../domain/command.ts";
import type { ControlRequest } from "../../domain/control.ts";
import { AppError, invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import { TRAITS } from "../../domain/options/traits.ts";
import { requestOf } from "../../domain/event.ts";
import {
  type PermissionRequest,
  keptToSession,
  type Decision,
  type PermissionUpdate,
} from "../../domain/permission.ts";
import type { AttachmentSource } from "../../domain/prompt.ts";
import type { Caller, Principal } from "../../domain/principal.ts";
import { checkLocalCommand } from "../../security/local-commands.ts";
import type { AnswerRequest, ContinueRequest, PromptRequest, VerifyRequest } from "../api.ts";
import type { Placement } from "../placement.ts";
import { boundOf, decisionWithin, checkModeWithin } from "../policy/bound.ts";
import { checkAnswers, checkDecision, checkMode } from "../policy/gate.ts";
import { gateUnder, ownPolicy, placedSession, type Operator } from "../policy/operator.ts";
import type { AgentRuntime, PlacedSession, SessionBackend, SessionRecord } from "../ports.ts";
import { checkSameProfile } from "./profile.ts";

/** Builds commands for the owner of a session from requests of callers, and checks them before they are sent. */

interface Dependencies extends Operator {
  readonly placement: Pick<Placement, "whyAway">;
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
}

/** Builds the command for a prompt, and reads the prompt's attachments. */
export async function promptCommand(
  dependencies: Operator & { readonly runtime: AgentRuntime },
  principal: Principal,
  { policy, spec }: Pick<SessionRecord, "policy" | "spec">,
  { attachments: sources = [], profile = spec.profile, ...request }: PromptRequest,
): Promise<CommandOf<"prompt">> {
  checkSameProfile(spec.profile, profile);
  checkLocalCommand("prompt", request.text);
  const session = placedSession(dependencies, { policy, principal, spec });
  if (request.verify) checkVerifies(session);
  const attachments = await dependencies.runtime.attach(session, sources);
  const images = attachments.length === 0 ? {} : { attachments };
  const terms = senderTerms(dependencies, principal, request);
  const keyed = request.idempotencyKey === undefined ? {} : { digest: digestOf(request.text, sources) };
  const data = { promptId: randomUUID(), ...request, ...keyed, ...images, ...terms };
  return { id: randomUUID(), principal, kind: "prompt", data };
}

type SenderTerms = Pick<CommandOf<"prompt">["data"], "environmentId" | "limits" | "policy">;

/** Returns the terms of the client that sends a command, as they hold for the turn. */
function senderTerms(operator: Operator, principal: Principal, { limits }: Pick<PromptRequest, "limits">): SenderTerms {
  const { environmentId, gate } = operator;
  const answered = gate.callersAnswer ? {} : { limits: { ...limits, noCaller: true } };
  return { ...answered, policy: ownPolicy(operator, principal), environmentId };
}

/** Builds the command to run the commands of a verification now. */
export function verifyCommand(
  operator: Operator,
  { policy, principal, spec }: SessionRecord,
  request: VerifyRequest,
): CommandOf<"verify"> {
  const { verify } = request;
  checkVerifies(placedSession(operator, { policy, principal, spec }));
  if (!verify && !spec.verify) {
    throw invalidArgument("commands", "is required, because the session has no commands of its own (option verify).");
  }
  const data = { turnId: randomUUID(), ...request, ...senderTerms(operator, principal, request) };
  return { id: randomUUID(), principal, kind: "verify", data };
}

/** Builds the command to send the refused request again. */
export function continueCommand(
  operator: Operator,
  { principal }: Pick<SessionRecord, "principal">,
  request: ContinueRequest,
): CommandOf<"continue"> {
  const data = { turnId: randomUUID(), ...request, ...senderTerms(operator, principal, request) };
  return { id: randomUUID(), principal, kind: "continue", data };
}

/** Throws PERMISSION_DENIED for a session in the sandbox, in which the server's commands would not run. */
function checkVerifies({ policy: { sandbox } }: Pick<PlacedSession, "policy">): void {
  if (sandbox !== "required") return;
  const problem = `verify: is not allowed on this server, because ${TRAITS.verify.sandbox.refused}.`;
  throw new AppError("PERMISSION_DENIED", `${problem} It runs every session in a sandbox (--sandbox required).`);
}

/**
 * Hashes `text` and `sources`. A file counts by path, because a retry names the path again although the content may have
 * changed.
 */
function digestOf(text: string, sources: readonly AttachmentSource[]): string {
  const named = sources.map((source) => ("path" in source ? [source.path] : [source.mediaType, source.data]));
  return createHash("sha256")
    .update(JSON.stringify([text, named]))
    .digest("base64url")
    .slice(0, DIGEST_CHARS);
}

/** Length of a digest in base64url: 132 bits. Short, because a session keeps several. */
const DIGEST_CHARS = 22;

/** Builds the command for an answer, without permission updates beyond the caller's bound. `withheld` describes the omitted. */
export async function answerCommand(
  dependencies: Dependencies,
  caller: Caller,
  record: SessionRecord,
  request: AnswerRequest,
): Promise<{ command: CommandOf<"answer">; withheld: readonly string[] }> {
  checkAnswers(caller, request);
  const gate = gateUnder(dependencies, record);
  const { by, requestId } = request;
  const authority = authorityOf(caller, request);
  const requested = decisionOf(request);
  checkDecision(gate, requested);
  // People decide without a bound; the calling model, and programs in place of people, decide within theirs.
  const isBound = !authority.decides && (by === CALLER || authority.asCaller);
  const bound = isBound ? boundOf(gate.callerApproves, caller, record.spec.callerApproves) : "all";
  const asked = await readRequest(dependencies.backend, record, requestId);
  if (asked && requested.behavior === "allow") checkAnswered(asked.request, requested.updatedInput);
  const { decision: bounded, withheld } = decisionWithin(requested, bound);
  if (opensFolders(bounded)) await requireHere(dependencies.placement, record, "updatedPermissions");
  const decision = await resolveFolders(dependencies.runtime, placedSession(dependencies, record), bounded);
  const forSession = request.decision === "allow_for_session";
  const remember = forSession && asked ? rememberedBy(asked) : undefined;
  const data = { requestId, decision, by, ...authority, bound, forSession, ...(remember && { remember }) };
  return { command: { id: randomUUID(), principal: caller.principal, kind: "answer", data }, withheld };
}

/**
 * Sets `asCaller` for an allow given neither by a person nor with the scope `decide`, so that the allow counts for no more than
 * an answer of the calling model. A denial needs no limit.
 */
function authorityOf(
  { scopes }: Caller,
  { asPerson = false, by, decision }: AnswerRequest,
): Pick<CommandOf<"answer">["data"], "asCaller" | "decides"> {
  if (scopes.includes("decide")) return { decides: true };
  return by === CALLER || asPerson || decision === "deny" ? {} : { asCaller: true };
}

/** Throws INVALID_ARGUMENT if a question is allowed without answers: Claude would be told that its user said nothing. */
function checkAnswered({ input, kind, requestId }: PermissionRequest, updatedInput: JsonObject = {}): void {
  if (kind !== "question") return;
  const answers = Answers.safeParse(updatedInput["answers"]).data;
  if (answers === undefined) {
    const advice = "Answer it with action answer_question and answers, or deny it.";
    throw invalidArgument("decision", `request ${requestId} is a question, and allow has no answers to it. ${advice}`);
  }
  withAnswers(input, answers);
}

interface FullRequest {
  readonly request: PermissionRequest;
  readonly eventId: number;
}

function rememberedBy({ request, eventId }: FullRequest): Remember | undefined {
  if (request.kind === "question") return undefined;
  return { rules: rulesToRemember(request), level: request.risk?.level ?? "all", eventId };
}

/** Reads the open request from the log. Returns `undefined` if `requestId` is not open: the owner then refuses the command. */
async function readRequest(
  backend: SessionBackend,
  record: SessionRecord,
  requestId: string,
): Promise<FullRequest | undefined> {
  const open = record.state.requests.find((each) => each.requestId === requestId);
  const request = open && requestOf((await backend.log.read(record.id, open.eventId, 1)).at(0));
  return request && { request, eventId: open.eventId };
}

/** Converts a caller's answer to the decision for Claude Code. */
function decisionOf(request: AnswerRequest): Decision {
  if (request.decision === "deny") {
    const message = request.denyMessage ?? "The request was denied.";
    return { behavior: "deny", message, ...(request.interrupt && { interrupt: true }) };
  }
  const updates = keptToSession(request.updatedPermissions ?? []);
  return {
    behavior: "allow",
    ...(request.updatedInput && { updatedInput: request.updatedInput }),
    ...(updates.length > 0 && { updatedPermissions: updates }),
  };
}

function opensFolders(decision: Decision): boolean {
  if (decision.behavior === "deny") return false;
  return decision.updatedPermissions?.some(({ type }) => type === "addDirectories") ?? false;
}

/** Throws INVALID_ARGUMENT for a session whose folders only another machine can see. */
export async function requireHere(
  placement: Pick<Placement, "whyAway">,
  { place }: Pick<SessionRecord, "place">,
  field: string,
): Promise<void> {
  const away = await placement.whyAway(place);
  if (away !== undefined) throw invalidArgument(field, `folders can be read on their own node only. ${away}`);
}

/**
 * Checks the folders that the answer opens to Claude Code, by the rules for a session's own folders. Replaces them by real
 * paths.
 */
export async function resolveFolders(
  runtime: Pick<AgentRuntime, "checkFolders">,
  session: PlacedSession,
  decision: Decision,
): Promise<Decision> {
  if (decision.behavior === "deny" || !decision.updatedPermissions) return decision;
  const updatedPermissions: PermissionUpdate[] = [];
  for (const update of decision.updatedPermissions) {
    updatedPermissions.push(update.type === "addDirectories" ? await checked(update) : update);
  }
  return { ...decision, updatedPermissions };

  async function checked(update: Extract<PermissionUpdate, { type: "addDirectories" }>): Promise<PermissionUpdate> {
    return { ...update, directories: await runtime.checkFolders(session, update.directories) };
  }
}

/** Builds the command for a request to Claude Code. Throws PERMISSION_DENIED for a mode that allows too much. */
export function controlCommand(
  operator: Operator,
  caller: Caller,
  { policy, principal, spec }: SessionRecord,
  data: { readonly by: string; readonly request: ControlRequest },
): CommandOf<"control"> {
  const { request } = data;
  if (request.do === "configure") {
    const gate = gateUnder(operator, { policy, principal });
    checkMode(gate, request.permissionMode);
    checkModeWithin(request.permissionMode, boundOf(gate.callerApproves, caller, spec.callerApproves));
  }
  const decides = caller.scopes.includes("decide") ? { decides: true } : {};
  return { id: randomUUID(), principal, kind: "control", data: { ...data, ...decides } };
}

/** Sets the environment record for the Claude Code process that `command` may start; `undefined` for one of the owner's choice. */
export function withEnvironment(command: Command, environmentId: string | undefined): Command {
  if (command.kind === "prompt") return { ...command, data: withRecord(command.data, environmentId) };
  if (command.kind === "verify") return { ...command, data: withRecord(command.data, environmentId) };
  if (command.kind === "continue") return { ...command, data: withRecord(command.data, environmentId) };
  if (command.kind === "queue") return { ...command, data: withRecord(command.data, environmentId) };
  if (command.kind === "control") return { ...command, data: withRecord(command.data, environmentId) };
  return command;
}

function withRecord<D extends { environmentId?: string }>(data: D, environmentId: string | undefined): D {
  const copy = { ...data };
  if (environmentId === undefined) delete copy.environmentId;
  else copy.environmentId = environmentId;
  return copy;
}
