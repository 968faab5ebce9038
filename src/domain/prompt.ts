import { z } from "zod";

/** Image sent with a prompt. */
export const Attachment = z.object({
  mediaType: z.enum(["image/png", "image/jpeg", "image/gif", "image/webp"]),
  /** Base64. */
  data: z.string(),
});
export type Attachment = z.infer<typeof Attachment>;

/** Bounds of one turn, in addition to those of its session; the tighter bound holds. */
export const TurnLimits = z.object({
  /** Maximum length of the turn, ms, not counting time spent waiting for a decision. */
  turnMs: z.number().exactOptional(),
  /** Time until an unanswered request is denied, ms from its creation. */
  requestTimeoutMs: z.number().exactOptional(),
  /** True if the client cannot show forms, so that requests do not go to the user. Holds until the next prompt. */
  noDialog: z.boolean().exactOptional(),
  /** True if the caller has no tool to answer with. Holds until the next prompt. */
  noCaller: z.boolean().exactOptional(),
  /** True if the client is unattended, so that a submitted form is the caller's answer. Holds until the next prompt. */
  unattended: z.boolean().exactOptional(),
  /** True if the caller may decide beyond the operator's bound for callers. Holds until the next prompt. */
  decides: z.boolean().exactOptional(),
  /** True if a person gave the prompt at the console. Holds until the next prompt. */
  atConsole: z.boolean().exactOptional(),
  /** True if the turn ends with the client that sent the prompt, and with the server that runs it. */
  endWithClient: z.boolean().exactOptional(),
});
export type TurnLimits = z.infer<typeof TurnLimits>;

/** Accepts media types in any case. */
const MediaType = z.preprocess(
  (given) => (typeof given === "string" ? given.toLowerCase() : given),
  Attachment.shape.mediaType,
);

/** Attachment as named by a caller: a file on the server's machine, or the image itself. */
export const AttachmentSource = z.union([
  z.strictObject({ path: z.string().min(1) }),
  z.strictObject({ data: z.base64().min(1), mediaType: MediaType }),
]);
export type AttachmentSource = z.infer<typeof AttachmentSource>;
