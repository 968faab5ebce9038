import { z } from "zod";
import { WhenBusy } from "../domain/command.ts";
import { invalidArgument } from "../domain/error.ts";
import type { JsonObject } from "../domain/json.ts";
import { SessionOptions } from "../domain/options.ts";
import { PermissionMode } from "../domain/permission.ts";
import type { Caller, Principal, Scope } from "../domain/principal.ts";
import type { Engine } from "../engine/api.ts";

/** What is done from the page: bodies as they come, checked, and the verbs of the engine that they mean. */

/** By whom, as the log has it, and what a prompt came through. */
const BY = "console";

/** Who writes here sees no forms and has no tools, but sits at the console. */
const AT_CONSOLE = { via: BY, limits: { noDialog: true, noCaller: true, atConsole: true } } as const;

const { maxBudgetUsd, maxTurns, model } = SessionOptions.shape;
const prompt = z.string().trim().min(1, "is empty: say what to do").max(1_000_000);
const idempotencyKey = z.string().min(1).max(200).exactOptional();

const Start = z.strictObject({
  prompt,
  cwd: z.string().min(1).max(4_096).exactOptional(),
  model,
  permissionMode: PermissionMode.exactOptional(),
  maxTurns,
  maxBudgetUsd,
  idempotencyKey,
});

/** Starts a session that can be looked at while it writes, and rewound. */
export async function start(
  engine: Engine,
  caller: Caller,
  body: unknown,
  cwdOf: (principal: Principal) => string,
): Promise<JsonObject> {
  const { cwd, idempotencyKey: key, prompt: text, ...given } = read(Start, body);
  const options = {
    cwd: cwd ?? cwdOf(caller.principal),
    ...given,
    includePartialMessages: true,
    enableFileCheckpointing: true,
  };
  const begun = { ...AT_CONSOLE, text, ...(key !== undefined && { idempotencyKey: key }) };
  const { sessionId, withheld: warnings } = await engine.open(caller, { options, prompt: begun });
  return { sessionId, warnings };
}

interface Action {
  readonly scope: Scope;
  readonly act: (engine: Engine, caller: Caller, sessionId: string, body: unknown) => Promise<JsonObject>;
}

/** What most of them need. */
const running = (act: Action["act"]): Action => ({ scope: "run", act });

const OK = { ok: true };
const Nothing = z.strictObject({});

/** By the last part of the path. */
export const ACTIONS: Readonly<Record<string, Action>> = {
  reply: running(async (engine, { principal }, sessionId, body) => {
    const Reply = z.strictObject({ prompt, whenBusy: WhenBusy.exactOptional(), idempotencyKey });
    const { prompt: text, ...given } = read(Reply, body);
    await engine.prompt(principal, sessionId, { ...AT_CONSOLE, text, ...given });
    return OK;
  }),
  interrupt: running(async (engine, { principal }, sessionId, body) => {
    read(Nothing, body);
    await engine.interrupt(principal, sessionId, BY);
    return OK;
  }),
  cancel: running(async (engine, { principal }, sessionId, body) => {
    const { reason = "" } = read(z.strictObject({ reason: z.string().trim().max(2_000).exactOptional() }), body);
    await engine.cancel(principal, sessionId, { by: BY, ...(reason !== "" && { reason }) });
    return OK;
  }),
  rename: running(async (engine, { principal }, sessionId, body) => {
    const { title } = read(z.strictObject({ title: z.string().trim().min(1).max(200) }), body);
    await engine.rename(principal, sessionId, title);
    return OK;
  }),
  delete: running(async (engine, { principal }, sessionId, body) => {
    read(Nothing, body);
    await engine.delete(principal, sessionId, BY);
    return OK;
  }),
  "release-queue": running(async (engine, { principal }, sessionId, body) => {
    read(Nothing, body);
    await engine.queue(principal, sessionId, { do: "release", by: BY });
    return OK;
  }),
  "drop-queue": running(async (engine, { principal }, sessionId, body) => {
    read(Nothing, body);
    await engine.queue(principal, sessionId, { do: "drop", by: BY });
    return OK;
  }),
  revoke: {
    scope: "approve",
    act: async (engine, { principal }, sessionId, body) => {
      const { rule } = read(z.strictObject({ rule: z.string().min(1).max(1_000).exactOptional() }), body);
      const revoked = await engine.revoke(principal, sessionId, { ...(rule !== undefined && { rule }), by: BY });
      return { ...OK, revoked };
    },
  },
  "more-time": {
    scope: "approve",
    act: async (engine, { principal }, sessionId, body) => {
      const { requestId } = read(z.strictObject({ requestId: z.string().min(1).max(200) }), body);
      await engine.extend(principal, sessionId, requestId);
      return OK;
    },
  },
  rewind: running(async (engine, caller, sessionId, body) => {
    const Rewind = z.strictObject({ promptId: z.string().min(1).max(200), dryRun: z.boolean() });
    const { spec } = await engine.get(caller.principal, sessionId);
    if (spec.enableFileCheckpointing !== true) {
      throw invalidArgument("rewind", "no file checkpoints are kept in this session. Those started here keep them.");
    }
    // Where it cannot, that is refused.
    return {
      canRewind: true,
      ...(await engine.control(caller, sessionId, { do: "rewind", ...read(Rewind, body) }, BY)),
    };
  }),
};

/** The body in its form; INVALID_ARGUMENT that names a field that there is not, which may be one misspelt, or the first that is wrong. */
function read<T extends z.ZodType>(form: T, body: unknown): z.output<T> {
  const parsed = form.safeParse(body);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const stray = issues.find(({ code }) => code === "unrecognized_keys");
  if (stray?.code === "unrecognized_keys")
    throw invalidArgument(stray.keys.join(", ").slice(0, 200), "is no field here.");
  const [issue] = issues;
  const field = issue?.path.map(String).join(".") ?? "";
  throw invalidArgument(field === "" ? "body" : field.slice(0, 200), `${issue?.message ?? "cannot be used"}.`);
}
