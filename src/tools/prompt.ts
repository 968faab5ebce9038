import { z } from "zod";

/** What a start and a reply share of their arguments. */

/** Far above any real prompt, and within what one message of the protocol may hold. */
const PROMPT_MAX = 2_097_152;

export const Prompt = z
  .string()
  .max(PROMPT_MAX)
  .refine((text) => text.trim() !== "", "must not be empty")
  .describe("what Claude Code is to do");

export const IdempotencyKey = z
  .string()
  .min(1)
  .max(200)
  .exactOptional()
  .describe("a repeated call with the same key does nothing new. Default: none");

export const SessionId = z.string().min(1).max(200);
