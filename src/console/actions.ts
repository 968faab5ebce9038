import { z } from "zod";
import { CONSOLE } from "../domain/approvals/answer-source.ts";
import { invalidArgument } from "../domain/error.ts";
import type { JsonObject } from "../domain/json.ts";
import { SessionOptions } from "../domain/options.ts";
import type { Principal, Scope } from "../domain/principal.ts";
import type { ActingCaller, ArgumentsOf, Fields, SessionAction } from "../engine/actions/action.ts";
import { moreTime } from "../engine/actions/answering.ts";
import { continueTurn, reply, start } from "../engine/actions/begin.ts";
import { cancel, dropQueue, interrupt, releaseQueue, remove, rename, revoke } from "../engine/actions/lifecycle.ts";
import { refuseUnsafeText } from "../engine/actions/unsafe-text.ts";
import { rewind } from "../engine/actions/process-control.ts";

/** Actions of the page, with the schema of each request body and the fields of each answer. */

/**
 * Limits for prompts from the page: neither a form at the client nor the calling model can answer requests (`noDialog`,
 * `noCaller`), but a person at the console can.
 */
const AT_CONSOLE = { via: CONSOLE, limits: { noDialog: true, noCaller: true, atConsole: true } } as const;

const { cwd, maxBudgetUsd, maxTurns, model, onLimit, permissionMode, priority, profile } = SessionOptions.shape;
const { idempotencyKey, prompt } = start.fields;

const StartBody = z.strictObject({
  prompt,
  cwd: cwd.exactOptional(),
  model,
  permissionMode,
  maxTurns,
  maxBudgetUsd,
  onLimit,
  priority,
  profile,
  idempotencyKey,
});

/**
 * Starts a session with partial messages, so that the page shows text while Claude Code writes, and with file checkpoints, so
 * that `rewind` works.
 */
export async function startSession(
  acting: ActingCaller,
  body: unknown,
  cwdOf: (principal: Principal) => string,
): Promise<JsonObject> {
  const { cwd: folder, idempotencyKey: key, prompt: text, ...given } = parseBody(StartBody, body);
  const options = {
    cwd: folder ?? cwdOf(acting.caller.principal),
    ...given,
    includePartialMessages: true,
    enableFileCheckpointing: true,
  };
  const begun = { ...AT_CONSOLE, text, ...(key !== undefined && { idempotencyKey: key }) };
  const { sessionId, withheld: warnings } = await start.run(acting, { options, prompt: begun });
  return { sessionId, warnings };
}

/** Action on a session, served as `POST /sessions/:id/{name}`. */
interface PageAction {
  readonly name: string;
  readonly scope: Scope;
  readonly act: (acting: ActingCaller, sessionId: string, body: unknown) => Promise<JsonObject>;
}

/** Reads `action.fields` from the body, except `sessionId`, which the path names. */
function pageAction<F extends Fields, R>(
  action: SessionAction<F, ArgumentsOf<F>, R>,
  { present = () => ({}), required = [] }: Presentation<F, R> = {},
): PageAction {
  const { fields, name, run, scope } = action;
  const form = z.strictObject(fields);
  const act: PageAction["act"] = async (acting, sessionId, body) => {
    const args = parseBody(form, withSession(body, sessionId));
    const missing = required.find((field) => !Object.hasOwn(args, field));
    if (missing !== undefined) throw invalidArgument(missing, "is required.");
    return { ok: true, ...present(await run(acting, args)) };
  };
  return { name, scope, act };
}

interface Presentation<F extends Fields, R> {
  /** Adds fields to the answer beside `ok`. */
  readonly present?: (result: R) => JsonObject;
  /** Fields that are optional in `action.fields`, but that the page must send. */
  readonly required?: readonly (keyof F & string)[];
}

/** Leaves out images, which `reply.fields` has. */
const ReplyBody = z.strictObject({ prompt, whenBusy: reply.fields.whenBusy, idempotencyKey });

const replyAction: PageAction = {
  name: reply.name,
  scope: reply.scope,
  act: async (acting, sessionId, body) => {
    const { prompt: text, ...given } = parseBody(ReplyBody, body);
    await reply.run(acting, { sessionId, request: { ...AT_CONSOLE, text, ...given } });
    return { ok: true };
  },
};

const continueAction: PageAction = {
  name: continueTurn.name,
  scope: continueTurn.scope,
  act: async (acting, sessionId, body) => {
    parseBody(z.strictObject({}), body);
    await continueTurn.run(acting, { sessionId, limits: AT_CONSOLE.limits });
    return { ok: true };
  },
};

export const ACTIONS: readonly PageAction[] = [
  replyAction,
  continueAction,
  pageAction(interrupt),
  pageAction(cancel),
  pageAction(rename),
  pageAction(remove),
  pageAction(releaseQueue),
  pageAction(dropQueue),
  pageAction(revoke, { present: (revoked) => ({ revoked }) }),
  pageAction(moreTime),
  pageAction(rewind, {
    required: ["promptId", "dryRun"],
    // `rewind` throws if the session cannot be rewound.
    present: ({ files }) => ({ canRewind: true, ...files }),
  }),
];

/** Adds `sessionId` from the path to `body`. */
function withSession(body: unknown, sessionId: string): unknown {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  if (Object.hasOwn(body, "sessionId")) throw invalidArgument("sessionId", "is not a known field. Remove it.");
  return { ...body, sessionId };
}

/** Parses `body`. Throws INVALID_ARGUMENT: unknown fields, perhaps misspelt, are reported before the first issue of `form`. */
function parseBody<T extends z.ZodType>(form: T, body: unknown): z.output<T> {
  refuseUnsafeText(body);
  const parsed = form.safeParse(body);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const stray = issues.find(({ code }) => code === "unrecognized_keys");
  if (stray?.code === "unrecognized_keys")
    throw invalidArgument(stray.keys.join(", ").slice(0, 200), "is not a known field. Remove it.");
  const [issue] = issues;
  const field = issue?.path.map(String).join(".") ?? "";
  throw invalidArgument(field === "" ? "body" : field.slice(0, 200), `${issue?.message ?? "cannot be used"}.`);
}
