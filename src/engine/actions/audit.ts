import { z } from "zod";

/** What an audit log may hold of what a caller has sent. Never what was said: prompts and inputs may hold anything. */
const About = z.object({
  action: z.string().max(50).exactOptional().catch(""),
  sessionId: z.string().max(100).exactOptional().catch(""),
  requestId: z.string().max(200).exactOptional().catch(""),
  decision: z.string().max(50).exactOptional().catch(""),
  permissionMode: z.string().max(50).exactOptional().catch(""),
});

export function aboutOf(given: unknown): z.output<typeof About> {
  return About.safeParse(given).data ?? {};
}
