import { z } from "zod";

/** An image that goes with a prompt. */
export const Attachment = z.object({
  mediaType: z.enum(["image/png", "image/jpeg", "image/gif", "image/webp"]),
  /** Base64. */
  data: z.string(),
});
export type Attachment = z.infer<typeof Attachment>;

/** Bounds of one turn, beside those of its session; the tighter one holds. */
export const TurnLimits = z.object({
  /** The turn's length, ms, time spent waiting for a decision not counted. */
  turnMs: z.number().exactOptional(),
  /** ms until an unanswered request is denied, from its creation. */
  requestTimeoutMs: z.number().exactOptional(),
  /** Its client can show no form: what is asked is not for the user. Holds until the next prompt. */
  noDialog: z.boolean().exactOptional(),
  /** Its caller has no tool to answer with. Holds as long. */
  noCaller: z.boolean().exactOptional(),
  /** The client is unattended: a submitted form is the caller's answer. Holds as long. */
  unattended: z.boolean().exactOptional(),
  /** Its caller may decide what is more than the operator's bound for callers. Holds as long. */
  decides: z.boolean().exactOptional(),
  /** It was given at the console by a person. Holds as long. */
  atConsole: z.boolean().exactOptional(),
  /** The turn ends with the client that sent the prompt, and with the server that ran it. */
  endWithClient: z.boolean().exactOptional(),
});
export type TurnLimits = z.infer<typeof TurnLimits>;

/** Media types have no case. */
const MediaType = z.preprocess(
  (given) => (typeof given === "string" ? given.toLowerCase() : given),
  Attachment.shape.mediaType,
);

/** What a caller names: a file on the server's machine, or the image itself. */
export const AttachmentSource = z.union([
  z.strictObject({ path: z.string().min(1) }),
  z.strictObject({ data: z.base64().min(1), mediaType: MediaType }),
]);
export type AttachmentSource = z.infer<typeof AttachmentSource>;
