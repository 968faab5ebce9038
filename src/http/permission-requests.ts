import { z } from "zod";
import { AppError, invalidArgument } from "../domain/error.ts";
import { requestOf } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import { type AnsweredBy, type PermissionRequest, type OpenRequest } from "../domain/permission.ts";
import type { Caller } from "../domain/principal.ts";
import { withAnswers } from "../domain/approvals/questions.ts";
import type { AnswerRequest, Engine } from "../engine/api.ts";
import { answer as answering } from "../engine/actions/answering.ts";
import { refuseUnsafeText } from "../engine/actions/unsafe-text.ts";
import { refusalReply, errorReply, type Reply } from "./error-reply.ts";

/**
 * Serves /requests/{session}/{request}: shows and answers a request that was reported to the webhook. Sessions of other
 * principals, like unknown requests, yield 404.
 */

export interface RequestEndpoint {
  look(caller: Caller, which: RequestKey): Promise<Response>;
  /** `body` is unvalidated JSON; `asPerson` is true if a person has signed in to answer. */
  answer(caller: Caller, which: RequestKey, body: unknown, asPerson?: boolean): Promise<Response>;
}

export interface RequestKey {
  readonly sessionId: string;
  readonly requestId: string;
}

export interface RequestsOptions {
  /** Answer source of all answers given here. */
  readonly by: "webhook" | "console" | "user";
  /** Throws `AppError` while the server starts. */
  readonly engine: () => Engine;
  /** Records each answer and each refusal. */
  readonly audit: ((entry: AnswerEntry) => void) | undefined;
}

export interface AnswerEntry extends RequestKey {
  readonly principal: string;
  /** Missing if the body was invalid. */
  readonly decision?: string;
  /** "ok", or the error code of the refusal. */
  readonly outcome: string;
}

const { fields } = answering;

const Body = z.strictObject({
  decision: fields.decision,
  message: fields.denyMessage,
  updatedInput: fields.updatedInput,
  answers: fields.answers,
});
type Body = z.infer<typeof Body>;

export function createRequestEndpoint({ audit, by, engine }: RequestsOptions): RequestEndpoint {
  return {
    async look(caller, which) {
      const { response } = await unlessRefused(async () =>
        showRequest(engine().forCaller(caller), { caller, which, by }),
      );
      return response;
    },
    async answer(caller, which, body, asPerson = false) {
      const parsed = Body.safeParse(body);
      const { outcome, response } = await unlessRefused(async () => {
        const verbs = engine().forCaller(caller);
        if (!parsed.success) throw new AppError("INVALID_ARGUMENT", firstProblem(parsed.error, body));
        return answerWith(verbs, { caller, which, by, asPerson }, parsed.data);
      });
      const decision = parsed.success ? { decision: parsed.data.decision } : {};
      audit?.({ principal: caller.principal, ...which, ...decision, outcome });
      return response;
    },
  };
}

/** Forbids caching, because the state of a request can change at any moment. */
const NO_STORE = { headers: { "cache-control": "no-store" } };

interface RequestContext {
  readonly caller: Caller;
  readonly which: RequestKey;
  readonly by: RequestsOptions["by"];
}

async function unlessRefused(reply: () => Promise<Reply>): Promise<Reply> {
  try {
    return await reply();
  } catch (error) {
    if (error instanceof AppError) return refusalReply(error);
    throw error;
  }
}

async function showRequest(verbs: Engine, { by, caller, which }: RequestContext): Promise<Reply> {
  const found = await findRequest(verbs, caller, which);
  if (!found) return notFound();
  if (!("open" in found)) return okReply({ ...which, status: "answered", ...found.answered });
  // Records that the caller has seen the whole input and may therefore answer with `updatedInput`.
  if (caller.scopes.includes(answering.scope)) await recordShown(verbs, { caller, which, by });
  return okReply({ ...which, status: "open", ...requestFields(found) });
}

function okReply(body: object): Reply {
  return { outcome: "ok", response: Response.json(body, NO_STORE) };
}

async function answerWith(
  verbs: Engine,
  { asPerson, by, caller, which }: RequestContext & { readonly asPerson: boolean },
  body: Body,
): Promise<Reply> {
  try {
    refuseUnsafeText(body);
    // Pages always have the whole input, even if no delivery was recorded.
    if (by !== "webhook" && body.updatedInput) await recordShown(verbs, { caller, which, by });
    const found = await findRequest(verbs, caller, which);
    if (!found) return notFound();
    if (!("open" in found)) return tooLate(which, found.answered);
    const request = { ...answerRequestOf(which, found, body), by, asPerson };
    // `withAnswers` sends the original questions back, so the whole input counts as shown.
    if (found.request.kind === "question") await recordShown(verbs, { caller, which, by });
    await answering.run({ engine: verbs, caller, by }, { sessionId: which.sessionId, request });
    return okReply({ ok: true, decision: body.decision });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === "PERMISSION_REQUEST_NOT_FOUND") return refuseSettled(verbs, caller, which);
    const isCallers = error.code === "PERMISSION_DENIED" && !asPerson && !caller.scopes.includes("decide");
    throw isCallers ? new AppError(error.code, `${error.message} ${AS_CALLER[by]}`) : error;
  }
}

/** Advice for a program without the scope `decide`. */
const AS_CALLER = {
  console:
    "An answer by token alone counts as the calling model's: sign in at the console, or use a token with the scope decide.",
  user: "An answer at this page counts as the calling model's: no person is known to sit at its client (attended).",
  webhook: "An answer by a token without the scope decide counts as the calling model's.",
} as const;

/** Responds to an answer that came after another answer. */
async function refuseSettled(verbs: Engine, caller: Caller, which: RequestKey): Promise<Reply> {
  const found = await findRequest(verbs, caller, which);
  return found && "answered" in found ? tooLate(which, found.answered) : notFound();
}

type FoundOpenRequest = { readonly open: OpenRequest; readonly request: PermissionRequest };
type FoundRequest = FoundOpenRequest | { readonly answered: Answered };
interface Answered {
  readonly decision: "allow" | "deny";
  readonly by: AnsweredBy;
}

/** Resolves to `undefined` if the caller has no such request. */
async function findRequest(
  verbs: Engine,
  { principal }: Caller,
  { requestId, sessionId }: RequestKey,
): Promise<FoundRequest | undefined> {
  try {
    const { state } = await verbs.get(principal, sessionId);
    const open = state.requests.find((each) => each.requestId === requestId);
    const request = open && requestOf((await verbs.read(principal, sessionId, open.eventId, 1)).at(0));
    if (open && request) return { open, request };
    const answered = state.answered.find((each) => each.requestId === requestId);
    return answered && { answered: { decision: answered.behavior, by: answered.by } };
  } catch (error) {
    if (error instanceof AppError && error.code === "SESSION_NOT_FOUND") return undefined;
    throw error;
  }
}

function requestFields({ request, open }: FoundOpenRequest): JsonObject {
  const { input, kind: type, risk, toolName } = request;
  return {
    type,
    toolName,
    input,
    ...(risk && { risk }),
    approver: open.approver,
    approverDeadline: new Date(open.approverDeadline).toISOString(),
    createdAt: new Date(open.createdAt).toISOString(),
    expiresAt: new Date(open.expiresAt).toISOString(),
  };
}

async function recordShown(
  verbs: Engine,
  { by, caller, which: { requestId, sessionId } }: RequestContext,
): Promise<void> {
  await verbs.delivered(caller.principal, sessionId, [{ requestId, whole: true, approver: by }]);
}

function answerRequestOf(
  { requestId }: RequestKey,
  { request, open }: FoundOpenRequest,
  body: Body,
): Omit<AnswerRequest, "by"> {
  const { answers, decision, message, updatedInput } = body;
  const { input, kind } = request;
  if (decision !== "deny" && message !== undefined)
    throw invalidArgument("message", "is only allowed with decision deny.");
  if (decision !== "allow" && updatedInput)
    throw invalidArgument("updatedInput", "is only allowed with decision allow.");
  if (updatedInput && !open.seenWhole) {
    throw invalidArgument(
      "updatedInput",
      "the input was sent truncated or masked. GET this path first for the whole input.",
    );
  }
  const said = { requestId, decision };
  if (decision === "deny") {
    if (answers) throw invalidArgument("answers", "is only allowed with decision allow.");
    return { ...said, ...(message !== undefined && { denyMessage: message }) };
  }
  if (kind === "permission") {
    if (answers) throw invalidArgument("answers", "is only for questions; this is a permission request.");
    return { ...said, ...(updatedInput && { updatedInput }) };
  }
  if (decision === "allow_for_session")
    throw invalidArgument("decision", "must be allow, with answers, or deny for a question.");
  if (updatedInput) throw invalidArgument("updatedInput", "is only for permission requests; send answers.");
  return { ...said, updatedInput: withAnswers(input, answers) };
}

/** Describes the first problem, with the name of the field. */
function firstProblem({ issues }: z.ZodError, body: unknown): string {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return "The body must be a JSON object.";
  const [issue] = issues;
  if (issue?.code === "unrecognized_keys") {
    return `Unknown field ${issue.keys.map((key) => JSON.stringify(key.slice(0, 100))).join(", ")}: send decision, message, updatedInput or answers.`;
  }
  const field = issue?.path.map(String).join(".").slice(0, 200) ?? "";
  return `${field}: ${issue?.message ?? "cannot be used"}.`;
}

function notFound(): Reply {
  const message = "None of your sessions has such a request.";
  return errorReply("PERMISSION_REQUEST_NOT_FOUND", { status: 404, error: "not_found", message });
}

function tooLate({ requestId }: RequestKey, { by, decision }: Answered): Reply {
  const message = `Request ${requestId} was already answered: ${decision}, by ${by}.`;
  const problem = { status: 409, error: "already_answered", message };
  return errorReply("PERMISSION_REQUEST_NOT_FOUND", problem, { decision, by });
}
