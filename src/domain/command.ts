import { z } from "zod";
import { Bound } from "./approvals/risk.ts";
import { SessionPolicy } from "./approvals/session-policy.ts";
import { Remember } from "./approvals/remembered.ts";
import { ControlRequest } from "./control.ts";
import { Refusal } from "./refusal.ts";
import { JsonObject } from "./json.ts";
import { Passed, ApproverName } from "./approvals/answer-source.ts";
import { AnsweredBy, Decision } from "./permission.ts";
import { Principal } from "./principal.ts";
import { Attachment, TurnLimits } from "./prompt.ts";

/** What a prompt does that finds a turn running: be refused, wait for its turn, or join the one that runs. */
export const WhenBusy = z.enum(["reject", "queue", "steer"]);
export type WhenBusy = z.infer<typeof WhenBusy>;

/**
 * Every verb on an existing session, as plain data: it goes to the actor's mailbox, or through the store's inbox to
 * the process that owns the session, unchanged.
 */
const command = <K extends string, D extends z.ZodType>(kind: K, data: D) =>
  z.object({ id: z.string(), principal: Principal, kind: z.literal(kind), data });

/** A part of the text of a request: those that were shown in order from its beginning make it whole. Characters. */
const Page = z.object({ from: z.number().int(), to: z.number().int(), of: z.number().int() });
const Delivered = z.object({
  requestId: z.string(),
  whole: z.boolean(),
  page: Page.exactOptional(),
  /** To whom. Default: the caller. */
  approver: ApproverName.exactOptional(),
});
export type Delivered = z.infer<typeof Delivered>;

export const Command = z.discriminatedUnion("kind", [
  /** `promptId` is also the uuid under which Claude Code sees the prompt, and the id of the turn it begins. */
  command(
    "prompt",
    z.object({
      promptId: z.string(),
      text: z.string(),
      attachments: z.array(Attachment).exactOptional(),
      idempotencyKey: z.string().exactOptional(),
      /** With a key: tells this prompt from others. */
      digest: z.string().exactOptional(),
      whenBusy: WhenBusy.exactOptional(),
      limits: TurnLimits.exactOptional(),
      /** The tool it came through. */
      via: z.string().exactOptional(),
      /** Forget what came after this message of the conversation. */
      resumeAt: z.string().exactOptional(),
      /** The terms of its sender. Without: those of the owner itself. */
      policy: SessionPolicy.exactOptional(),
      environmentId: z.string().exactOptional(),
    }),
  ),
  command(
    "answer",
    z.object({
      requestId: z.string(),
      decision: Decision,
      by: AnsweredBy,
      /** By a program that may decide what is more than the operator's bound for callers. */
      decides: z.boolean().exactOptional(),
      /** By a program, where people answer: it counts for no more than an answer of the calling model. */
      asCaller: z.boolean().exactOptional(),
      /** The maximum risk of a changed input that the answering caller may approve. Default: the owner's bound. */
      bound: Bound.exactOptional(),
      /** Remember an allow until the session ends. */
      forSession: z.boolean(),
      /** By what it is remembered. */
      remember: Remember.exactOptional(),
    }),
  ),
  /** Forgets what is remembered by this rule; without one all. */
  command("revoke", z.object({ rule: z.string().exactOptional(), by: z.string() })),
  /** A client waits on, reads or follows the session through another server, or was told how it went on unattended. */
  command("attend", z.object({})),
  /** These requests have been shown to someone who can answer; `whole` when the input was shown uncut. */
  command("delivered", z.object({ requests: z.array(Delivered) })),
  /** Whom the request is with does not answer it: it goes on to the next. Nothing happens where it is with another. */
  command("pass", z.object({ requestId: z.string(), from: ApproverName, why: Passed.exclude(["time"]) })),
  /** The approver needs more time: the request stays open longer, with the same approver. */
  command("extend", z.object({ requestId: z.string() })),
  /** The first of two forms was filled in; with `denial` the request is denied, whatever comes of the second. */
  command(
    "fill",
    z.object({ requestId: z.string(), from: ApproverName, filled: JsonObject, denial: z.string().exactOptional() }),
  ),
  /** With a prompt: only what comes of that one; it is dropped where it still waits, and nothing is done once it is over. */
  command(
    "interrupt",
    z.object({
      by: z.string(),
      promptId: z.string().exactOptional(),
      /** The client that sent the prompt is gone. The session was not stopped: other prompts run on. */
      isClientGone: z.boolean().exactOptional(),
    }),
  ),
  /** What becomes of the prompts that are held: they run, or they are dropped. */
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
  command("cancel", z.object({ by: z.string(), reason: z.string().exactOptional() })),
  command("close", z.object({ by: z.string() })),
]);
export type Command = z.infer<typeof Command>;
export type CommandKind = Command["kind"];
export type CommandOf<K extends CommandKind> = Extract<Command, { kind: K }>;

/**
 * `cursor` is the id of the first event that the command brought about, so that the caller can read on from there;
 * `data` is what Claude Code answered to a control command.
 */
export const CommandReply = z.union([
  z.object({ ok: z.literal(true), cursor: z.number().int(), data: JsonObject.exactOptional() }),
  z.object({ ok: z.literal(false), refusal: Refusal }),
]);
export type CommandReply = z.infer<typeof CommandReply>;

/** What is answered when the owner went away before it could answer. */
export const NO_ANSWER: CommandReply = {
  ok: false,
  refusal: { code: "INTERNAL", message: "The server that owns the session went away. Try again." },
};

/** What an owner answers that could start no process for a prompt: its sender's server can, and takes the session. */
export const NO_ENVIRONMENT: CommandReply = {
  ok: false,
  refusal: { code: "INTERNAL", message: "The server that owns the session lacks the environment for it. Try again." },
};

/** The input that an answer lets run in place of the one that was asked. */
export function changedInputOf({ data, kind }: Command): { requestId: string; input: JsonObject } | undefined {
  if (kind !== "answer" || data.decision.behavior === "deny" || !data.decision.updatedInput) return undefined;
  return { requestId: data.requestId, input: data.decision.updatedInput };
}
