import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/**
 * A plugin of rolldown. The MCP SDK contains two JSON Schema validators and selects the larger one on Node: 290 KB that would be
 * compiled and run before `initialize`, for forms that this server does not ask clients to fill in.
 */
export const lightValidator = {
  name: "light-validator",
  resolveId: {
    filter: { id: /^@modelcontextprotocol\/(server|client)\/_shims$/ },
    handler: (id) => join(root, id.replace("_shims", "light-shims.mjs")),
  },
  load: {
    filter: { id: /light-shims\.mjs$/ },
    handler: (id) => `
      export { default as process } from "node:process";
      export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator }
        from "@modelcontextprotocol/${id.includes("client") ? "client" : "server"}/validators/cf-worker";
      export const CORS_IS_POSSIBLE = false;`,
  },
};
