import { statusOf } from "../../domain/session.ts";
import { defineAction } from "./action.ts";
import { PromptId, Reason, RuleText, SessionId, Title } from "./input.ts";

/** Actions that end a turn or a session, rename a session, and change waiting prompts and remembered answers. */

const fields = { sessionId: SessionId };

/** Ends the running turn. A no-op if none runs. */
export const interrupt = defineAction({
  name: "interrupt",
  scope: "run",
  fields,
  run: async ({ by, caller: { principal }, engine }, { sessionId }) => {
    const { state, unreadable } = await engine.get(principal, sessionId);
    // Asks the owner of an unreadable session, because only the owner knows whether a turn runs.
    const interrupted = state.turn !== null || unreadable !== undefined;
    if (interrupted) await engine.interrupt(principal, sessionId, by);
    return { interrupted };
  },
});

/** Ends the running turn if the prompt began or joined that turn. Drops the prompt if still waiting. */
export const interruptPrompt = defineAction({
  name: "interrupt_prompt",
  scope: "run",
  fields: { ...fields, promptId: PromptId },
  run: async ({ by, caller: { principal }, engine }, { promptId, sessionId }) => {
    await engine.interrupt(principal, sessionId, by, promptId);
  },
});

/** Ends a session permanently, and a running turn as cancelled. `already`: reason of an earlier end. */
export const cancel = defineAction({
  name: "cancel",
  scope: "run",
  fields: { ...fields, reason: Reason.exactOptional() },
  run: async ({ by, caller: { principal }, engine }, { reason = "", sessionId }) => {
    const { state } = await engine.get(principal, sessionId);
    if (state.closed) return { already: state.closed.reason };
    await engine.cancel(principal, sessionId, { by, ...(reason !== "" && { reason }) });
    return {};
  },
});

/** Ends a session permanently, and a running turn as interrupted. `already`: status of a session that had ended before. */
export const close = defineAction({
  name: "close",
  scope: "run",
  fields,
  run: async ({ by, caller: { principal }, engine }, { sessionId }) => {
    const { state } = await engine.get(principal, sessionId);
    if (state.closed) return { already: statusOf(state) };
    await engine.close(principal, sessionId, by);
    return {};
  },
});

export const remove = defineAction({
  name: "delete",
  scope: "run",
  fields,
  run: async ({ by, caller: { principal }, engine }, { sessionId }) => engine.delete(principal, sessionId, by),
});

export const rename = defineAction({
  name: "rename",
  scope: "run",
  fields: { ...fields, title: Title },
  run: async ({ caller: { principal }, engine }, { sessionId, title }) => engine.rename(principal, sessionId, title),
});

/** Runs the prompts marked `held`. */
export const releaseQueue = defineAction({
  name: "release_queue",
  scope: "run",
  fields,
  run: async ({ by, caller: { principal }, engine }, { sessionId }) =>
    engine.queue(principal, sessionId, { do: "release", by }),
});

/** Drops the prompts marked `held`. */
export const dropQueue = defineAction({
  name: "drop_queue",
  scope: "run",
  fields,
  run: async ({ by, caller: { principal }, engine }, { sessionId }) =>
    engine.queue(principal, sessionId, { do: "drop", by }),
});

/** Revokes the remembered answers with `rule`, or all. Resolves with the rules of the revoked answers. */
export const revoke = defineAction({
  name: "revoke",
  scope: "approve",
  fields: { ...fields, rule: RuleText.exactOptional() },
  run: async ({ by, caller: { principal }, engine }, { rule, sessionId }) =>
    engine.revoke(principal, sessionId, { by, ...(rule !== undefined && { rule }) }),
});

/** Packs a session into a file for another machine. */
export const pack = defineAction({
  name: "pack",
  scope: "admin",
  fields,
  run: async ({ caller: { principal }, engine }, { sessionId }) => engine.pack(principal, sessionId),
});
