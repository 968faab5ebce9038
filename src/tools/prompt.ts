import { isAbsolute, resolve } from "node:path";
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
