import { isAbsolute, resolve } from "node:path";
import { z } from "zod";
import { invalidArgument } from "../domain/error.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import { AdvancedOptions } from "../domain/options.ts";
import type { TurnLimits } from "../domain/prompt.ts";
import { answer } from "../engine/actions/answering.ts";
import { start } from "../engine/actions/begin.ts";
import type { ToolCall, ToolDeps } from "./define.ts";

/** Parameters shared by `claude_code` and `claude_code_reply`. */

export const promptFields = {
  prompt: start.fields.prompt,
  attachments: start.fields.attachments.describe("images: {path} or {data, mediaType}. Default: []"),
};

export const IdempotencyKey = start.fields.idempotencyKey.describe("a retry with it is a no-op. Default: none");

/** Options that a prompt may have, given in `advanced`. */
export const PromptOptions = z.strictObject({
  endWithClient: z
    .boolean()
    .exactOptional()
    .describe("interrupt the turn when the client that sent the prompt is gone. Default: false"),
  /** Verification of this turn, or of all turns of a session that starts. */
  verify: AdvancedOptions.shape.verify,
});

/**
 * Ends the turn when the client disconnects. Throws INVALID_ARGUMENT if the server cannot notice a disconnect; call before the
 * prompt is sent, and pass the sent prompt to the returned function.
 */
export function endingWithClient(
  endWithClient: boolean,
  { client: { leaving }, principal }: Pick<ToolCall, "client" | "principal">,
  { engine }: Pick<ToolDeps, "engine">,
): (sent: { readonly sessionId: string; readonly cursor: number }) => Promise<void> {
  if (!endWithClient) return async () => Promise.resolve();
  if (!leaving) throw invalidArgument("endWithClient", NO_CONNECTION);
  return async ({ cursor, sessionId }) => {
    const promptId = promptIdIn(await engine.read(principal, sessionId, cursor, MAX_SEARCHED));
    leaving.add(promptId, async () => engine.clientGone(principal, sessionId, promptId));
  };
}

/** Limit of a prompt whose call waits for the end: the turn ends with its client. A task is not bound to its client. */
export function boundToClient({ client: { tasks } }: Pick<ToolCall, "client">): Pick<TurnLimits, "endWithClient"> {
  return tasks ? {} : { endWithClient: true };
}

const NO_CONNECTION =
  "is not possible over HTTP from protocol 2026-07-28 on, where a client has no connection that ends. Leave it out, and interrupt the session when you no longer need it.";

/** Number of events to search for the prompt, from its cursor. */
const MAX_SEARCHED = 64;

/** Returns the id of the first prompt in `events`. */
export function promptIdIn(events: readonly StoredEvent[]): string {
  return events.find((event) => event.type === "prompt.queued")?.data.promptId ?? "";
}

/** Short form of the schema: the two forms of an attachment are long, and some clients refuse an array without `items`. */
export const ADVERTISED_ATTACHMENTS: JsonObject = {
  type: "array",
  items: { type: "object", properties: {} },
  description: "images: {path} or {data: base64, mediaType}. Default: []",
};

/**
 * Describes the people who can answer requests of the turn. `noDialog` if the client cannot show forms or the caller may not
 * approve.
 */
export function approvalLimits({
  attended = false,
  client,
  scopes,
}: Pick<ToolCall, "attended" | "client" | "scopes">): Pick<TurnLimits, "decides" | "noDialog" | "unattended"> {
  const showsForms = client.elicitation && scopes.includes(answer.scope);
  return {
    ...(scopes.includes("decide") && { decides: true }),
    ...(showsForms ? !attended && { unattended: true } : { noDialog: true }),
  };
}

/** Resolves `cwd` against the folder in which the client was started; also the default. */
export function resolveFolder(cwd: string | undefined, { defaults }: Pick<ToolDeps, "defaults">): string {
  if (cwd === undefined) return defaults.cwd();
  return isAbsolute(cwd) ? cwd : resolve(defaults.cwd(), cwd);
}
