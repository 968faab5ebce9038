import type { McpServer, ServerContext } from "@modelcontextprotocol/server";
import type { ServerOptions } from "../options.ts";

const METHODS = ["tasks/get", "tasks/update", "tasks/cancel"] as const;

/** Whatever they are: who may ask comes before what was asked. */
const ANY = {
  "~standard": { version: 1 as const, vendor: "claude-agents-mcp", validate: (value: unknown) => ({ value }) },
};

/** Takes the requests of the Tasks extension; what answers them is loaded by the first. */
export function serveTasks({ server }: McpServer, options: ServerOptions): void {
  const { tasks } = options;
  if (!tasks) return;
  for (const method of METHODS) {
    server.setRequestHandler(method, { params: ANY }, async (params: unknown, context: ServerContext) => {
      const { answerTask } = await import("./answer.ts");
      return answerTask(method, params, context, { ...options, tasks });
    });
  }
}
