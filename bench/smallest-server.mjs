/** Baseline: the smallest server that the MCP SDK allows, without tools. Bundled to one file by `bundledSmallestServer`. */
import { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

// oxlint-disable-next-line typescript/no-deprecated -- McpServer is larger
const server = new Server({ name: "smallest", version: "1.0.0" }, { capabilities: {} });
await server.connect(new StdioServerTransport());
