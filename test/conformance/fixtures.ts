import { McpServer, type ServerNotifier } from "@modelcontextprotocol/server";
import { addAskingTools } from "./fixtures/asking.ts";
import { addContentTools } from "./fixtures/content.ts";
import { addPrompts, addResources } from "./fixtures/reading.ts";
import { createStateSeal } from "./fixtures/state.ts";

/** A server with every feature that the conformance suite requests by name and none of our tools, to test our HTTP layer. */

/** Returns a factory of servers for an endpoint; `notify` resolves with the notifier of listening clients. */
export function fixtures(notify: () => Promise<ServerNotifier>): () => McpServer {
  const seal = createStateSeal();
  return () => {
    const server = new McpServer(
      { name: "conformance-fixtures", version: "1.0.0" },
      {
        capabilities: {
          tools: { listChanged: true },
          resources: { subscribe: true, listChanged: true },
          prompts: { listChanged: true },
          logging: {},
          completions: {},
        },
        requestState: { verify: async (state, context) => seal.verify(state, context) },
      },
    );
    addContentTools(server, notify);
    addAskingTools(server, seal);
    addResources(server);
    addPrompts(server);
    return server;
  };
}
