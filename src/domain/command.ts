import { z } from "zod";
import { Bound } from "./approvals/risk.ts";
import { SessionPolicy } from "./approvals/session-policy.ts";
import { Remember } from "./approvals/remembered.ts";
import { ControlRequest } from "./control.ts";
import { Refusal } from "./refusal.ts";
import { JsonObject } from "./json.ts";
import { PassReason, ApproverName } from "./approvals/answer-source.ts";
import { AnsweredBy, Decision } from "./permission.ts";
import { Principal } from "./principal.ts";
import { Attachment, TurnLimits } from "./prompt.ts";
import { Verify } from "./verification.ts";

/**
 * Handling of a prompt while a turn runs: `reject` refuses the prompt, `queue` lets it wait, `steer` adds it to the running
 * turn.
 */
export const WhenBusy = z.enum(["reject", "queue", "steer"]);
export type WhenBusy = z.infer<typeof WhenBusy>;

/**
 * Builds the schema of an operation on an existing session, as plain data: a command goes unchanged to the actor's mailbox, or
 * through the store's inbox to the process that owns the session.
 */
const command = <K extends string, D extends z.ZodType>(kind: K, data: D) =>
  z.object({ id: z.string(), principal: Principal, kind: z.literal(kind), data });

/** Part of a request's text: characters `from` to `to` of `of`. Pages shown in order from 0 to `of` count as the whole text. */
const Page = z.object({ from: z.number().int(), to: z.number().int(), of: z.number().int() });
const Delivered = z.object({
  requestId: z.string(),
  whole: z.boolean(),
  page: Page.exactOptional(),
  /** Approver that was shown the request. Default: the caller. */
  approver: ApproverName.exactOptional(),
});
export type Delivered = z.infer<typeof Delivered>;

export const Command = z.discriminatedUnion("kind", [
  /** `promptId` is also the uuid of the prompt in Claude Code and the id of the turn that the prompt begins. */
  command(
    "prompt",
    z.object({
      promptId: z.string(),
      text: z.string(),
      attachments: z.array(Attachment).exactOptional(),
      idempotencyKey: z.string().exactOptional(),
      /** Digest of the prompt, to detect a different prompt under a reused `idempotencyKey`. */
      digest: z.string().exactOptional(),
      whenBusy: WhenBusy.exactOptional(),
      limits: TurnLimits.exactOptional(),
      /** Name of the tool that sent the prompt. */
      via: z.string().exactOptional(),
      /** Message of the conversation to resume at. Claude Code forgets all later messages. */
      resumeAt: z.string().exactOptional(),
      /** Policy of the sender. Default: the owner's own. */
      policy: SessionPolicy.exactOptional(),
      environmentId: z.string().exactOptional(),
      /** Verification of the turn. Default: the session's. */
      verify: Verify.exactOptional(),
    }),
  ),
  command(
    "answer",
    z.object({
      requestId: z.string(),
      decision: Decision,
      by: AnsweredBy,
      /** True for a program that may decide beyond the operator's bound for callers. */
      decides: z.boolean().exactOptional(),
      /** True for a program that answers in a person's place: the answer counts no more than the calling model's. */
      asCaller: z.boolean().exactOptional(),
      /** Maximum risk of a changed input that the answering caller may approve. Default: the owner's bound. */
      bound: Bound.exactOptional(),
      /** Remember an `allow` until the session ends. */
      forSession: z.boolean(),
      /** Rules to remember the answer by. */
      remember: Remember.exactOptional(),
    }),
  ),
  /** Forgets the answers remembered by `rule`. Default: all remembered answers. */
  command("revoke", z.object({ rule: z.string().exactOptional(), by: z.string() })),
  /**
   * Sent when a client waits on, reads or follows the session through another server, or receives a report of its unattended
   * work.
   */
  command("attend", z.object({})),
  /** Records that requests were shown to someone who can answer. `whole` if the input was shown uncut. */
  command("delivered", z.object({ requests: z.array(Delivered) })),
  /** Passes a request that `from` does not answer on to the next approver. No-op if another approver has the request. */
  command("pass", z.object({ requestId: z.string(), from: ApproverName, why: PassReason.exclude(["time"]) })),
  /** Extends the time of a request for the present approver. */
  command("extend", z.object({ requestId: z.string() })),
  /** Records the content of the first of two forms. With `denial` the request is denied, regardless of the second form. */
  command(
    "fill",
    z.object({ requestId: z.string(), from: ApproverName, filled: JsonObject, denial: z.string().exactOptional() }),
  ),
  /**
   * Interrupts the turn. With `promptId`, interrupts only the turn of that prompt or drops the prompt if still queued, and is a
   * no-op once the prompt is done.
   */
  command(
    "interrupt",
    z.object({
      by: z.string(),
      promptId: z.string().exactOptional(),
      /** Set if the client that sent the prompt is gone. The session's other prompts run on. */
      isClientGone: z.boolean().exactOptional(),
    }),
  ),
  /** Runs (`release`) or drops the held prompts. */
  command(
    "queue",
    z.object({ do: z.enum(["release", "drop"]), by: z.string(), environmentId: z.string().exactOptional() }),
  ),
  command(
    "control",
    z.object({
      by: z.string(),
      decides: z.boolean().exactOptional(),
      request: ControlRequest,
      environmentId: z.string().exactOptional(),
    }),
  ),
  /** Runs commands of a verification without a prompt, as a turn of origin `verify`. */
  command(
    "verify",
    z.object({
      by: z.string(),
      turnId: z.string(),
      /** Default: the session's. */
      verify: Verify.exactOptional(),
      limits: TurnLimits.exactOptional(),
      /** Policy of the sender. Default: the owner's own. */
      policy: SessionPolicy.exactOptional(),
      environmentId: z.string().exactOptional(),
    }),
  ),
  /**
   * Sends the refused request again, as a turn of the prompt that was refused. Refused unless the last turn ended at a limit of
   * the plan whose reset has passed.
   */
  command(
    "continue",
    z.object({
      by: z.string(),
      turnId: z.string(),
      limits: TurnLimits.exactOptional(),
      /** Policy of the sender. Default: the owner's own. */
      policy: SessionPolicy.exactOptional(),
      environmentId: z.string().exactOptional(),
    }),
  ),
  command("cancel", z.object({ by: z.string(), reason: z.string().exactOptional() })),
  command("close", z.object({ by: z.string() })),
]);
export type Command = z.infer<typeof Command>;
export type CommandKind = Command["kind"];
export type CommandOf<K extends CommandKind> = Extract<Command, { kind: K }>;

/**
 * Answer to a command. `cursor` is the id of the first event caused by the command, so that the caller can read on from there.
 * `data` is Claude Code's answer to a control command.
 */
export const CommandReply = z.union([
  z.object({ ok: z.literal(true), cursor: z.number().int(), data: JsonObject.exactOptional() }),
  z.object({ ok: z.literal(false), refusal: Refusal }),
]);
export type CommandReply = z.infer<typeof CommandReply>;

/** Reply to a command whose owner went away before answering. */
export const NO_ANSWER: CommandReply = {
  ok: false,
  refusal: { code: "INTERNAL", message: "The server that owns the session went away. Try again." },
};

/** Reply of an owner that cannot start a process for a prompt. The sender's server can, and takes over the session. */
export const NO_ENVIRONMENT: CommandReply = {
  ok: false,
  refusal: { code: "INTERNAL", message: "The server that owns the session lacks the environment for it. Try again." },
};

/** Returns the input that an allow substitutes for the requested input. */
export function changedInputOf({ data, kind }: Command): { requestId: string; input: JsonObject } | undefined {
  if (kind !== "answer" || data.decision.behavior === "deny" || !data.decision.updatedInput) return undefined;
  return { requestId: data.requestId, input: data.decision.updatedInput };
}
