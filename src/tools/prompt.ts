import { isAbsolute, resolve } from "node:path";
import { z } from "zod";
import { invalidArgument } from "../domain/error.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { TurnLimits } from "../domain/prompt.ts";
import { answer } from "../engine/actions/answering.ts";
import { start } from "../engine/actions/begin.ts";
import type { ToolCall, ToolDeps } from "./define.ts";

/** What a start and a reply share of their arguments. */

export const said = {
  prompt: start.fields.prompt,
  attachments: start.fields.attachments.describe("images: {path} or {data, mediaType}. Default: []"),
};

export const IdempotencyKey = start.fields.idempotencyKey.describe("a retry with it is a no-op. Default: none");

/** What belongs to a prompt, and is given in `advanced`. */
export const PromptOptions = z.strictObject({
  endWithClient: z
    .boolean()
    .exactOptional()
    .describe("interrupt the turn when the client that sent the prompt is gone. Default: false"),
});

/**
 * Has the prompt end with its client. Throws INVALID_ARGUMENT where it cannot be known when the client is gone; so it is asked
 * before the prompt is sent, and given the prompt afterwards.
 */
export function endingWithClient(
  endWithClient: boolean,
  { client: { leaving }, principal }: Pick<ToolCall, "client" | "principal">,
  { engine }: Pick<ToolDeps, "engine">,
): (sent: { readonly sessionId: string; readonly cursor: number }) => Promise<void> {
  if (!endWithClient) return async () => Promise.resolve();
  if (!leaving) throw invalidArgument("endWithClient", NOT_KNOWN);
  return async ({ cursor, sessionId }) => {
    const promptId = promptIdIn(await engine.read(principal, sessionId, cursor, BEGINNING));
    leaving.add(promptId, async () => engine.clientGone(principal, sessionId, promptId));
  };
}

const NOT_KNOWN =
  "is not possible over HTTP from protocol 2026-07-28 on, where a client has no connection that ends. Leave it out, and interrupt the session when you no longer need it.";

/** Events among which the prompt is, from its cursor on. */
const BEGINNING = 64;

/** The id of the first prompt among the events. */
export function promptIdIn(events: readonly StoredEvent[]): string {
  return events.find((event) => event.type === "prompt.queued")?.data.promptId ?? "";
}

/** The two forms would be listed twice, at length; some clients refuse an array without `items`. */
export const ADVERTISED_ATTACHMENTS: JsonObject = {
  type: "array",
  items: { type: "object", properties: {} },
  description: "images: {path} or {data: base64, mediaType}. Default: []",
};

/**
 * Who is there for what comes of the prompt. It is no matter for the user where its client cannot show them a form, or its caller
 * may not approve.
 */
export function formsOf({
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

/** A folder as the client means it: by default the one in which it was started, from which a relative path counts as well. */
export function folderOf(cwd: string | undefined, { defaults }: Pick<ToolDeps, "defaults">): string {
  if (cwd === undefined) return defaults.cwd();
  return isAbsolute(cwd) ? cwd : resolve(defaults.cwd(), cwd);
}
