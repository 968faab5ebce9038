import { z } from "zod";

/** Fields of a caller's input that an audit log may hold. Excludes prompts and tool inputs, because of secrets in them. */
const AuditFields = z.object({
  action: z.string().max(50).exactOptional().catch(""),
  sessionId: z.string().max(100).exactOptional().catch(""),
  requestId: z.string().max(200).exactOptional().catch(""),
  decision: z.string().max(50).exactOptional().catch(""),
  permissionMode: z.string().max(50).exactOptional().catch(""),
});

export function describeAction(given: unknown): z.output<typeof AuditFields> {
  return AuditFields.safeParse(given).data ?? {};
}
