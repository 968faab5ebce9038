import { z } from "zod";
import { AttachmentSource } from "../../domain/prompt.ts";

/** Input of actions with its limits, for every surface. */

/**
 * Maximum length of a prompt, characters. Far above any real prompt; in UTF-8 it fits into a message without attachments over
 * HTTP (8 MiB), and into a line over stdio.
 */
const MAX_PROMPT = 2_097_152;

/** Not trimmed, because whitespace around the text may be part of the prompt. */
export const Prompt = z
  .string()
  .max(MAX_PROMPT)
  .refine((text) => text.trim() !== "", "must not be empty");

/** Maximum number of images in one request to the model. */
const MAX_IMAGES = 20;

export const Attachments = z.array(AttachmentSource).max(MAX_IMAGES).exactOptional();

const Id = z.string().min(1).max(200);

export const IdempotencyKey = Id.exactOptional();

export const SessionId = Id;
export const RequestId = Id;
export const PromptId = Id;
export const TaskId = Id;

export const Title = z.string().trim().min(1).max(200);

/** Reason for the end of a session. The log keeps no more characters (`MAX_REASON`). */
export const Reason = z.string().trim().max(500);

export const DenyMessage = z.string().min(1).max(20_000);

/** Rule of a remembered answer. The limit is above the length of any such rule. */
export const RuleText = z.string().min(1).max(1_000);

export const SearchText = z.string().min(1).max(1_000);

/** Default and maximum of `limit` for a page of sessions. */
export const [PAGE_DEFAULT, MAX_PAGE] = [50, 200] as const;
