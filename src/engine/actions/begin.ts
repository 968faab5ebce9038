import { WhenBusy } from "../../domain/command.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { AdoptRequest, OpenSessionRequest, PromptRequest } from "../api.ts";
import { defineRequest } from "./action.ts";
import { Attachments, IdempotencyKey, Prompt, SessionId } from "./input.ts";
import { refuseMalformedRules } from "./given-rules.ts";
import { refuseNul } from "./unsafe-text.ts";

/** How work begins, and how it goes on. Which options a caller may name is for its surface to say. */

const said = { prompt: Prompt, attachments: Attachments, idempotencyKey: IdempotencyKey };

interface ToSession {
  readonly sessionId: string;
}

/** A session with its first prompt. */
export const start = defineRequest({
  name: "start",
  scope: "run",
  fields: said,
  run: async ({ caller, engine }, request: OpenSessionRequest) => {
    refuseNul(request.options);
    refuseMalformedRules(request.options);
    return engine.open(caller, request);
  },
});

/** A session in which nothing runs yet. */
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

/** The next prompt of a session. */
export const reply = defineRequest({
  name: "reply",
  scope: "run",
  fields: { sessionId: SessionId, ...said, whenBusy: WhenBusy.exactOptional() },
  run: async ({ caller, engine }, { request, sessionId }: ToSession & { readonly request: PromptRequest }) =>
    engine.prompt(caller.principal, sessionId, request),
});

/** The next prompt, in a copy of a session. */
export const fork = defineRequest({
  name: "fork",
  scope: "run",
  fields: { sessionId: SessionId, ...said },
  run: async ({ caller, engine }, { request, sessionId }: ToSession & { readonly request: PromptRequest }) =>
    engine.fork(caller, sessionId, request),
});

/** The next prompt of a session of Claude Code that is not in the store. */
export const adopt = defineRequest({
  name: "adopt",
  scope: "run",
  fields: { sessionId: SessionId, ...said },
  run: async ({ caller, engine }, request: AdoptRequest) => {
    refuseNul(request.options);
    refuseMalformedRules(request.options);
    return engine.adopt(caller, request);
  },
});
