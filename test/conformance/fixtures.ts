import { McpServer, type ServerNotifier } from "@modelcontextprotocol/server";
import { addAskingTools } from "./fixtures/asking.ts";
import { addContentTools } from "./fixtures/content.ts";
import { addPrompts, addResources } from "./fixtures/reading.ts";
import { createStateSeal } from "./fixtures/state.ts";

/**
 * A server with every feature of the protocol and none of ours: everything that the conformance suite asks for by name,
 * so that all of it goes through our HTTP layer.
 */

/** A factory for an endpoint; `notify` reaches those who listen to it, once it is there. */
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
