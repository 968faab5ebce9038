import { McpServer, type McpRequestContext, type ServerContext } from "@modelcontextprotocol/server";
import { instructionsFor, hasPrompts, type ToolName } from "../tools/listed.ts";
import { Leaving } from "../tools/leaving.ts";
import type { ReportedTools } from "../tools/reported-tools.ts";
import { lazy } from "./lazy.ts";
import { nameFields } from "./named-fields.ts";
import type { ServerOptions } from "./server-options.ts";
import { TASKS_EXTENSION } from "./tasks/extension.ts";
import type { Subscriptions } from "./watch/subscriptions.ts";

/**
 * From tools to an MCP server. The SDK moves messages; what is valid and what is said is decided in tools/. Nothing that
 * `initialize` can do without is imported here: the rest is loaded behind its answer.
 */

const TITLE = "Claude Code as a background agent";

/** A server for one connection, or for one request. Side-effect free: a client may probe with one and use another. */
export function createMcpServer(
  { leaving: connected, ...given }: ServerOptions,
  { era }: Pick<McpRequestContext, "era">,
): McpServer {
  // Over HTTP each client of the 2025 era has a server of its own; in the later era one cannot tell when a client is gone.
  const own = connected || era === "modern" ? undefined : new Leaving(given.log);
  const options = { ...given, leaving: connected ?? own };
  const { info, logs, reported, toolNames } = options;
  const hasTasks = options.tasks !== undefined && era === "modern";
  const { name, version } = info;
  const server = new McpServer(
    { name, title: TITLE, version },
    {
      capabilities: {
        tools: { listChanged: reported !== undefined },
        resources: { listChanged: false, subscribe: true },
        completions: {},
        ...(hasPrompts(toolNames) && { prompts: { listChanged: false } }),
        ...(logs && { logging: {} }),
        ...(hasTasks && { extensions: { [TASKS_EXTENSION]: {} } }),
      },
      instructions: instructionsFor(toolNames),
      requestState: { verify: async (state, context) => options.states.verify(state, context) },
    },
  );
  nameFields(server);
  const onClose = [followLater(server, options), ...(reported ? [followReports(server, reported, toolNames)] : [])];
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a server is no event target
  server.server.onclose = () => {
    for (const end of onClose) end();
    own?.end();
  };
  answerLater(server, options);
  promptLater(server, options);
  if (hasTasks) serveTasks(server, options);
  // A client asks for the tools next: they are loaded while the answer to its first message is on its way.
  setImmediate(() => void options.offer().catch(() => undefined));
  return server;
}

/**
 * Answers for tools and resources. Not through the SDK's own registration: it wants every tool before it connects, and
 * its templates match a query only when all of its parameters are there, in their order.
 */
function answerLater({ server }: McpServer, options: ServerOptions): void {
  let logLevel: string | undefined;
  if (options.logs) {
    // In place of the SDK's own handler, which keeps to itself what was asked for.
    server.setRequestHandler("logging/setLevel", ({ params }) => {
      logLevel = params.level;
      return {};
    });
  }
  /* oxlint-disable typescript/no-deprecated -- in the 2025 era nothing else tells */
  const said = () => ({
    capabilities: server.getClientCapabilities(),
    clientInfo: server.getClientVersion(),
    logLevel,
  });
  /* oxlint-enable typescript/no-deprecated */
  const tools = async () => {
    const [{ toolAnswers }, { tools: all }] = await Promise.all([import("./tools.ts"), options.offer()]);
    return toolAnswers(all, said, options);
  };
  const resources = async () => {
    const [{ resourceAnswers }, { library }] = await Promise.all([
      import("./resources/resource-answers.ts"),
      options.offer(),
    ]);
    return resourceAnswers(library, said, options);
  };
  server.setRequestHandler("tools/list", async (_, context) => (await tools()).list(context));
  server.setRequestHandler("tools/call", async ({ params }, context) => (await tools()).call(params, context));
  server.setRequestHandler("resources/list", async (_, context) => (await resources()).list(context));
  server.setRequestHandler("resources/templates/list", async (_, context) =>
    (await resources()).listTemplates(context),
  );
  server.setRequestHandler("resources/read", async ({ params }, context) => (await resources()).read(params, context));
}

/** Prompts, and what is typed into their arguments and for the ids of sessions. */
function promptLater({ server }: McpServer, options: ServerOptions): void {
  const prompts = async () => {
    const [{ promptAnswers }, offered] = await Promise.all([import("./prompts/prompt-answers.ts"), options.offer()]);
    return promptAnswers(offered.prompts, options);
  };
  if (hasPrompts(options.toolNames)) {
    server.setRequestHandler("prompts/list", async (_, context) => (await prompts()).list(context));
    server.setRequestHandler("prompts/get", async ({ params }, context) => (await prompts()).get(params, context));
  }
  server.setRequestHandler("completion/complete", async ({ params }, context) => {
    const [{ answerCompletion }, offered] = await Promise.all([
      import("./prompts/completion-answers.ts"),
      options.offer(),
    ]);
    return answerCompletion(params, context, offered, options);
  });
}

/**
 * Subscriptions of the 2025 era, which end with their connection; later clients listen instead, and never come here.
 * Returns what ends them.
 */
function followLater({ server }: McpServer, { following, log, toolNames }: ServerOptions): () => void {
  let opened: Subscriptions | undefined;
  const subscriptions = lazy(async () => {
    const [made, all] = await Promise.all([import("./watch/subscriptions.ts"), following()]);
    // A client that has gone meanwhile hears nothing.
    const onUpdated = (uri: string) => void server.sendResourceUpdated({ uri }).catch(() => undefined);
    return (opened = new made.Subscriptions(all, onUpdated));
  });
  server.setRequestHandler("resources/subscribe", async ({ params: { uri } }, context) => {
    const [{ subscribe }, own] = await Promise.all([import("./resources/resource-answers.ts"), subscriptions()]);
    await subscribe(uri, context, own, { log, toolNames });
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", async ({ params: { uri } }) => {
    (await subscriptions()).drop(uri);
    return {};
  });
  return () => opened?.close();
}

/** Returns what ends it. */
function followReports(server: McpServer, reported: ReportedTools, listed: readonly ToolName[]): () => void {
  return reported.onChange(() => {
    if (listed.some((name) => reported.describes(name))) server.sendToolListChanged();
  });
}

const TASK_METHODS = ["tasks/get", "tasks/update", "tasks/cancel"] as const;

/** Whatever they are: who may ask comes before what was asked. */
const ANY = {
  "~standard": { version: 1 as const, vendor: "claude-agents-mcp", validate: (value: unknown) => ({ value }) },
};

/** Takes the requests of the Tasks extension; what answers them is loaded by the first. */
function serveTasks({ server }: McpServer, options: ServerOptions): void {
  const { tasks } = options;
  if (!tasks) return;
  for (const method of TASK_METHODS) {
    server.setRequestHandler(method, { params: ANY }, async (params: unknown, context: ServerContext) => {
      const { answerTask } = await import("./tasks/answer.ts");
      return answerTask(method, params, context, { ...options, tasks });
    });
  }
}
