import { z } from "zod";

/** Schema of the MCP servers of a session, in the SDK's form, as far as JSON can express it. */

const strings = z.record(z.string(), z.string());

const anyKind = {
  timeout: z.number().int().min(1000).max(86_400_000).exactOptional().describe("maximum ms for a tool call"),
  alwaysLoad: z
    .boolean()
    .exactOptional()
    .describe("always list its tools in the prompt, never defer them to tool search"),
};

const ToolPolicy = z.strictObject({
  name: z.string().min(1),
  permission_policy: z.enum(["always_allow", "always_ask", "always_deny"]).exactOptional(),
  org_max_permission: z.enum(["allow", "ask", "blocked"]).exactOptional(),
});

export const McpServer = z.union([
  z.strictObject({
    type: z.literal("stdio").exactOptional(),
    command: z.string().min(1),
    args: z.array(z.string()).exactOptional(),
    env: strings.exactOptional(),
    ...anyKind,
  }),
  z.strictObject({
    // Claude Code accepts `streamable-http` as a second name for `http`.
    type: z.enum(["http", "sse", "streamable-http"]).transform((type) => (type === "streamable-http" ? "http" : type)),
    url: z.url(),
    headers: strings.exactOptional(),
    tools: z.array(ToolPolicy).max(500).exactOptional().describe("permission policies of single tools"),
    ...anyKind,
  }),
]);
