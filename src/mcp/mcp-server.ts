import {
  McpServer,
  type McpRequestContext,
  type ServerCapabilities,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { instructionsFor, hasPrompts, type ToolName } from "../tools/tool-names.ts";
import { ClientCleanup } from "../tools/client-cleanup.ts";
import type { DynamicDescription } from "../tools/dynamic-description.ts";
import { EVENT_METHODS, EVENTS_EXTENSION } from "./events/parts.ts";
import { lazy } from "./lazy.ts";
import { instructEach } from "./instructions.ts";
import { nameFields } from "./named-fields.ts";
import type { ServerOptions } from "./server-options.ts";
import { TASKS_EXTENSION } from "../tools/arguments/wait-limits.ts";
import type { ClientFacts } from "./tool-call.ts";
import type { Subscriptions } from "./watch/subscriptions.ts";

/**
 * Connects the tools to an MCP server. The SDK moves messages; tools/ validates arguments and writes answers. Modules that
 * `initialize` does not need are imported later, to keep its answer fast.
 */

/** SEP-2640, which is written for the protocol revision 2026-07-28 and later. */
const SKILLS_EXTENSION = "io.modelcontextprotocol/skills";

const TITLE = "Claude Code as a background agent";

/**
 * Creates a server for one connection, or for one request. Free of side effects, because a client may probe one server and use
 * another.
 */
export function createMcpServer(
  { leaving: connected, ...given }: ServerOptions,
  { era }: Pick<McpRequestContext, "era">,
): McpServer {
  // Over HTTP, each client of the 2025 era has a server of its own. In the later era, the end of a client cannot be detected.
  const own = connected || era === "modern" ? undefined : new ClientCleanup(given.log);
  const options = { ...given, leaving: connected ?? own };
  const { info, toolNames } = options;
  const hasTasks = options.tasks !== undefined && era === "modern";
  const hasSkills = hasPrompts(toolNames) && era === "modern";
  const { name, version } = info;
  const server = new McpServer(
    { name, title: TITLE, version },
    {
      capabilities: capabilitiesOf(options, { hasSkills, hasTasks }),
      instructions: instructionsFor(toolNames),
      requestState: { verify: async (state, context) => options.states.verify(state, context) },
    },
  );
  nameFields(server);
  instructEach(server, options);
  const onClose = [
    serveSubscriptions(server, options),
    ...(options.reported ? [announceToolChanges(server, options.reported, toolNames)] : []),
  ];
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a server is not an event target
  server.server.onclose = () => {
    for (const end of onClose) end();
    own?.end();
  };
  serveToolsAndResources(server, options, hasSkills);
  servePrompts(server, options);
  if (hasTasks) serveTasks(server, options);
  serveEvents(server, options);
  // Preloads the tools while the answer to `initialize` is being sent, because a client asks for the tools next.
  setImmediate(() => void options.offer().catch(() => undefined));
  return server;
}

function capabilitiesOf(
  { events, logs, reported, toolNames }: ServerOptions,
  { hasSkills, hasTasks }: { readonly hasSkills: boolean; readonly hasTasks: boolean },
): ServerCapabilities {
  const extensions = {
    ...(hasTasks && { [TASKS_EXTENSION]: {} }),
    ...(hasSkills && { [SKILLS_EXTENSION]: {} }),
    ...(events && { [EVENTS_EXTENSION]: {} }),
  };
  return {
    tools: { listChanged: reported !== undefined },
    resources: { listChanged: false, subscribe: true },
    completions: {},
    ...(hasPrompts(toolNames) && { prompts: { listChanged: false } }),
    ...(logs && { logging: {} }),
    // Clients from before the final specification look for `events`, all others for the extension.
    ...(events && { events: {} }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  };
}

/**
 * Answers requests for tools and resources. Bypasses the SDK's registration, which needs every tool before it connects, and
 * whose templates match a query only with all parameters in order.
 */
function serveToolsAndResources({ server }: McpServer, options: ServerOptions, hasSkills: boolean): void {
  let logLevel: string | undefined;
  if (options.logs) {
    // Replaces the SDK's handler, which does not expose the level.
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
    const [{ toolAnswers }, { tools: all }] = await Promise.all([import("./tool-answers.ts"), options.offer()]);
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
  if (!hasSkills) return;
  server.setRequestHandler("skills/list", ANY_PARAMS, async (_, context) => (await resources()).listSkills(context));
  server.setRequestHandler("skills/get", ANY_PARAMS, async (params, context) =>
    (await resources()).getSkill(params, context),
  );
}

/** Answers requests for prompts, and for completions of prompt arguments and session ids. */
function servePrompts({ server }: McpServer, options: ServerOptions): void {
  const prompts = async () => {
    const [{ promptAnswers }, offered] = await Promise.all([import("./prompts/prompt-answers.ts"), options.offer()]);
    return promptAnswers(offered.prompts, () => clientOf(server), options);
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
 * Serves subscriptions of the 2025 era, which end with their connection; later clients use `subscriptions/listen`. Returns a
 * function that ends all.
 */
function serveSubscriptions({ server }: McpServer, { following, log, toolNames }: ServerOptions): () => void {
  let opened: Subscriptions | undefined;
  const subscriptions = lazy(async () => {
    const [made, all] = await Promise.all([import("./watch/subscriptions.ts"), following()]);
    // Ignores failures: a client that has left needs no notification.
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

/** Returns a function that ends the notifications. */
function announceToolChanges(server: McpServer, reported: DynamicDescription, listed: readonly ToolName[]): () => void {
  return reported.onChange(() => {
    if (listed.some((name) => reported.describes(name))) server.sendToolListChanged();
  });
}

const TASK_METHODS = ["tasks/get", "tasks/update", "tasks/cancel"] as const;

/** Accepts any params, because the scope is checked before the params. */
const ANY_PARAMS = {
  params: {
    "~standard": { version: 1 as const, vendor: "claude-agents-mcp", validate: (value: unknown) => ({ value }) },
  },
};

/** Serves the Tasks extension. The code behind is loaded by the first request. */
function serveTasks({ server }: McpServer, options: ServerOptions): void {
  const { tasks } = options;
  if (!tasks) return;
  for (const method of TASK_METHODS) {
    server.setRequestHandler(method, ANY_PARAMS, async (params: unknown, context: ServerContext) => {
      const { answerTask } = await import("./tasks/answer.ts");
      return answerTask(method, params, context, { ...options, tasks });
    });
  }
}

/** Serves the Events extension. The code behind is loaded by the first request. */
function serveEvents({ server }: McpServer, options: ServerOptions): void {
  const { events } = options;
  if (!events) return;
  for (const method of EVENT_METHODS) {
    server.setRequestHandler(method, ANY_PARAMS, async (params: unknown, context: ServerContext) => {
      const { answerEvents } = await import("./events/serve.ts");
      return answerEvents(method, params, context, { ...options, events, client: clientOf(server), owner: server });
    });
  }
}

function clientOf(server: McpServer["server"]): Pick<ClientFacts, "clientInfo"> {
  // oxlint-disable-next-line typescript/no-deprecated -- in the 2025 era nothing else tells
  return { clientInfo: server.getClientVersion() };
}
