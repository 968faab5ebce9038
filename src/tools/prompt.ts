import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import { AttachmentSource, type TurnLimits } from "../domain/prompt.ts";
import type { ToolCall } from "./define.ts";

/** What a start and a reply share of their arguments. */

/** Far above any real prompt, and within what one message of the protocol may hold. */
const PROMPT_MAX = 2_097_152;

export const Prompt = z
  .string()
  .max(PROMPT_MAX)
  .refine((text) => text.trim() !== "", "must not be empty");

export const IdempotencyKey = z
  .string()
  .min(1)
  .max(200)
  .exactOptional()
  .describe("a retry with it is a no-op. Default: none");

/** What one request to the model may hold. */
const IMAGES_MAX = 20;

export const Attachments = z
  .array(AttachmentSource)
  .max(IMAGES_MAX)
  .exactOptional()
  .describe("images: {path} or {data, mediaType}. Default: []");

/** The two forms would be listed twice, at length; some clients refuse an array without `items`. */
export const ADVERTISED_ATTACHMENTS: JsonObject = {
  type: "array",
  items: { type: "object", properties: {} },
  description: "images: {path} or {data: base64, mediaType}. Default: []",
};

export const SessionId = z.string().min(1).max(200);

/**
 * Who is there for what comes of the prompt. It is no matter for the user where its client cannot show them a form, or its caller
 * may not approve.
 */
export function formsOf({
  attended = false,
  client,
  scopes,
}: Pick<ToolCall, "attended" | "client" | "scopes">): Pick<TurnLimits, "decides" | "noDialog" | "unattended"> {
  const showsForms = client.elicitation && scopes.includes("approve");
  return {
    ...(scopes.includes("decide") && { decides: true }),
    ...(showsForms ? !attended && { unattended: true } : { noDialog: true }),
  };
}
