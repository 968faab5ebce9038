import type { Happening } from "../../../src/engine/step.ts";
import type { CommandKind, CommandOf } from "../../../src/domain/command.ts";

import { BEGUN_POLICY } from "./walk.ts";

/** Commands as callers give them, by name. */

export const forbidden = { by: "server", request: { do: "suspend", reason: "forbidden" } } as const;

function said<K extends CommandKind>(kind: K, data: CommandOf<K>["data"]): { kind: K; data: CommandOf<K>["data"] } {
  return { kind, data };
}

const A1 = { requestId: "a1", by: "caller", forSession: false } as const;
const ALLOW = { behavior: "allow" } as const;
const DENY = { behavior: "deny", message: "no" } as const;
const GO_ON = { promptId: "p9", text: "go on" };
const STRICTER = { policy: { ...BEGUN_POLICY, sandbox: "required" }, environmentId: "e9" } as const;

export const COMMANDS = {
  prompt: said("prompt", GO_ON),
  "prompt, new key": said("prompt", { ...GO_ON, idempotencyKey: "k9" }),
  "prompt, known key": said("prompt", { ...GO_ON, idempotencyKey: "k1" }),
  allow: said("answer", { ...A1, decision: ALLOW }),
  "allow for session": said("answer", { ...A1, decision: ALLOW, by: "user", forSession: true }),
  "allow changed": said("answer", { ...A1, decision: { ...ALLOW, updatedInput: { a: 1 } } }),
  "allow, by the user": said("answer", { ...A1, decision: ALLOW, by: "user" }),
  "allow, by the console": said("answer", { ...A1, decision: ALLOW, by: "console" }),
  "user unreachable": said("pass", { requestId: "a1", from: "user", why: "unreachable" }),
  "user dismisses": said("pass", { requestId: "a1", from: "user", why: "dismissed" }),
  "user unattended": said("pass", { requestId: "a1", from: "user", why: "unattended" }),
  "user denies, to say why": said("fill", {
    requestId: "a1",
    from: "user",
    filled: { decision: "deny" },
    denial: "no",
  }),
  "caller unreachable": said("pass", { requestId: "a1", from: "caller", why: "unreachable" }),
  "delivered to the user": said("delivered", { requests: [{ requestId: "a1", whole: true, approver: "user" }] }),
  "allow unknown": said("answer", { ...A1, decision: ALLOW, requestId: "?" }),
  deny: said("answer", { ...A1, decision: DENY }),
  "deny and interrupt": said("answer", { ...A1, decision: { ...DENY, interrupt: true } }),
  "allow, remembered": said("answer", {
    ...A1,
    decision: ALLOW,
    forSession: true,
    remember: { rules: ["Bash(make:*)"], level: "all", eventId: 3 },
  }),
  attend: said("attend", {}),
  revoke: said("revoke", { by: "caller" }),
  delivered: said("delivered", { requests: [{ requestId: "a1", whole: true }] }),
  "delivered cut": said("delivered", { requests: [{ requestId: "a1", whole: false }] }),
  "delivered unknown": said("delivered", { requests: [{ requestId: "?", whole: true }] }),
  "prompt, queue": said("prompt", { ...GO_ON, whenBusy: "queue", limits: { turnMs: 5000, requestTimeoutMs: 1000 } }),
  continue: said("continue", { by: "caller", turnId: "00000000-0000-4000-8000-000000000007" }),
  verify: said("verify", { by: "caller", turnId: "00000000-0000-4000-8000-000000000009" }),
  "verify, commands given": said("verify", {
    by: "caller",
    turnId: "00000000-0000-4000-8000-000000000009",
    verify: { commands: ["make"], attempts: 0, timeoutMs: 1000 },
  }),
  "prompt, steer": said("prompt", { ...GO_ON, whenBusy: "steer" }),
  "prompt, from an earlier point": said("prompt", { ...GO_ON, whenBusy: "queue", resumeAt: "m1" }),
  "prompt, stricter": said("prompt", { ...GO_ON, ...STRICTER, whenBusy: "queue" }),
  "prompt, stricter, steer": said("prompt", { ...GO_ON, ...STRICTER, whenBusy: "steer" }),
  "release queue": said("queue", { do: "release", by: "caller" }),
  "drop queue": said("queue", { do: "drop", by: "caller" }),
  "choose a model": said("control", { by: "caller", request: { do: "configure", model: "opus" } }),
  "choose bypass": said("control", { by: "caller", request: { do: "configure", permissionMode: "bypassPermissions" } }),
  "stop a task": said("control", { by: "caller", request: { do: "stop-task", taskId: "b1" } }),
  "read a task": said("control", { by: "caller", request: { do: "task-output", taskId: "b1" } }),
  suspend: said("control", { by: "caller", request: { do: "suspend" } }),
  "suspend, for a slot": said("control", { by: "server", request: { do: "suspend", reason: "slot" } }),
  "suspend, forbidden": said("control", forbidden),
  usage: said("control", { by: "caller", request: { do: "usage" } }),
  rewind: said("control", { by: "caller", request: { do: "rewind", promptId: "p1", dryRun: false } }),
  interrupt: said("interrupt", { by: "caller" }),
  "interrupt of p1": said("interrupt", { by: "caller", promptId: "p1" }),
  "interrupt of p2": said("interrupt", { by: "caller", promptId: "p2" }),
  "client of p1 gone": said("interrupt", { by: "client", promptId: "p1", isClientGone: true }),
  "client of p2 gone": said("interrupt", { by: "client", promptId: "p2", isClientGone: true }),
  cancel: said("cancel", { by: "caller" }),
  "cancel, with reason": said("cancel", { by: "caller", reason: "no need" }),
  close: said("close", { by: "caller" }),
};

export type CommandName = keyof typeof COMMANDS;

export function isCommand(name: string): name is CommandName {
  return name in COMMANDS;
}

const OF = { commandId: "c9", by: "caller" } as const;

/** Outcomes of control requests to Claude Code. */
export const ANSWERS = {
  "has chosen": { ...OF, request: { do: "configure", model: "opus" }, outcome: { ok: true, data: {} } },
  "has not chosen": {
    ...OF,
    request: { do: "configure", model: "?" },
    outcome: { ok: false, refusal: { code: "INVALID_ARGUMENT", message: "no such model" } },
  },
  "has put files back": {
    ...OF,
    request: { do: "rewind", promptId: "p1", dryRun: false },
    outcome: { ok: true, data: { filesChanged: ["a"] } },
  },
  "would put files back": {
    ...OF,
    request: { do: "rewind", promptId: "p1", dryRun: true },
    outcome: { ok: true, data: { filesChanged: ["a"] } },
  },
} satisfies Record<string, Omit<Extract<Happening, { type: "controlled" }>, "type">>;
