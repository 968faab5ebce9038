import { WhenBusy } from "../../domain/command.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { TurnLimits } from "../../domain/prompt.ts";
import { Verify, verifyOf } from "../../domain/verification.ts";
import type { AdoptRequest, OpenSessionRequest, PromptRequest } from "../api.ts";
import { defineRequest } from "./action.ts";
import { Attachments, IdempotencyKey, Prompt, SessionId } from "./input.ts";
import { refuseMalformedRules } from "./malformed-rules.ts";
import { refuseNul } from "./unsafe-text.ts";

/**
 * Actions that begin or continue work. Each surface, such as MCP tools or the console, decides which options a caller may give.
 */

const promptFields = { prompt: Prompt, attachments: Attachments, idempotencyKey: IdempotencyKey };

interface ToSession {
  readonly sessionId: string;
}

interface ContinueNow extends ToSession {
  readonly limits: TurnLimits;
}

interface VerifyNow extends ContinueNow {
  readonly commands?: Verify["commands"];
}

export const start = defineRequest({
  name: "start",
  scope: "run",
  fields: promptFields,
  run: async ({ caller, engine }, request: OpenSessionRequest) => {
    refuseNul(request.options);
    refuseMalformedRules(request.options);
    return engine.open(caller, request);
  },
});

/** Creates a session in which nothing runs yet. */
export const create = defineRequest({
  name: "create",
  scope: "run",
  fields: {},
  run: async ({ caller, engine }, { options }: { readonly options: SessionOptions }) => {
    refuseNul(options);
    refuseMalformedRules(options);
    return engine.create(caller, options);
  },
});

/** Sends the next prompt of a session (`Engine.prompt`). */
export const reply = defineRequest({
  name: "reply",
  scope: "run",
  fields: { sessionId: SessionId, ...promptFields, whenBusy: WhenBusy.exactOptional() },
  run: async ({ caller, engine }, { request, sessionId }: ToSession & { readonly request: PromptRequest }) => {
    refuseNul(request.verify, ["verify"]);
    return engine.prompt(caller.principal, sessionId, request);
  },
});

/** Runs commands of a verification in a session, as a turn without a prompt. Default: the commands of the session. */
export const verify = defineRequest({
  name: "verify",
  scope: "run",
  fields: { sessionId: SessionId, commands: Verify.shape.commands.exactOptional() },
  run: async ({ by, caller: { principal }, engine }, { commands, limits, sessionId }: VerifyNow) => {
    refuseNul(commands, ["commands"]);
    const verifies = commands === undefined ? {} : { verify: verifyOf(commands) };
    return engine.verify(principal, sessionId, { by, limits, ...verifies });
  },
});

/** Sends the request of the last turn again that the API refused at a limit (`Engine.continueTurn`). */
export const continueTurn = defineRequest({
  name: "continue",
  scope: "run",
  fields: { sessionId: SessionId },
  run: async ({ by, caller: { principal }, engine }, { limits, sessionId }: ContinueNow) =>
    engine.continueTurn(principal, sessionId, { by, limits }),
});

/** Sends the next prompt in a copy of a session. */
export const fork = defineRequest({
  name: "fork",
  scope: "run",
  fields: { sessionId: SessionId, ...promptFields },
  run: async ({ caller, engine }, { request, sessionId }: ToSession & { readonly request: PromptRequest }) => {
    refuseNul(request.verify, ["verify"]);
    return engine.fork(caller, sessionId, request);
  },
});

/** Takes over a Claude Code session that is not in the store, and sends its next prompt. */
export const adopt = defineRequest({
  name: "adopt",
  scope: "run",
  fields: { sessionId: SessionId, ...promptFields },
  run: async ({ caller, engine }, request: AdoptRequest) => {
    refuseNul(request.options);
    refuseNul(request.prompt.verify, ["verify"]);
    refuseMalformedRules(request.options);
    return engine.adopt(caller, request);
  },
});
