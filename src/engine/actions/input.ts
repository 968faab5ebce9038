import { z } from "zod";
import { AttachmentSource } from "../../domain/prompt.ts";

/** What a caller gives to an action, and how much of it: the same whichever way it comes in. */

/**
 * Far above any real prompt. In UTF-8 it fits into what a message without attachments may hold over HTTP (8 MiB), and into
 * a line over stdio.
 */
const MAX_PROMPT = 2_097_152;

/** As it was written: what stands around it may be part of it. */
export const Prompt = z
  .string()
  .max(MAX_PROMPT)
  .refine((text) => text.trim() !== "", "must not be empty");

/** What one request to the model may hold. */
const MAX_IMAGES = 20;

export const Attachments = z.array(AttachmentSource).max(MAX_IMAGES).exactOptional();

const Id = z.string().min(1).max(200);

export const IdempotencyKey = Id.exactOptional();

export const SessionId = Id;
export const RequestId = Id;
export const PromptId = Id;
export const TaskId = Id;

export const Title = z.string().trim().min(1).max(200);

/** Why a session was ended: as much as its log keeps. */
export const Reason = z.string().trim().max(500);

/** Why a request is denied. */
export const DenyMessage = z.string().min(1).max(20_000);

/** Longer than any rule that an answer is remembered by. */
export const RuleText = z.string().min(1).max(1_000);

/** What sessions are sought by. */
export const SearchText = z.string().min(1).max(1_000);

/** Sessions in a page of a list. */
export const [PAGE_DEFAULT, MAX_PAGE] = [50, 200] as const;
