import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/**
 * Plugin of rolldown that selects the smaller JSON Schema validator of the MCP SDK. On Node the SDK selects the larger: 290 KB
 * to compile and run before `initialize`, for forms that this server does not ask clients to fill in.
 */
export const lightValidator = {
  name: "light-validator",
  resolveId: {
    filter: { id: /^@modelcontextprotocol\/server\/_shims$/ },
    handler: () => join(root, "light-shims.mjs"),
  },
  load: {
    filter: { id: /light-shims\.mjs$/ },
    handler: () => `
      export { default as process } from "node:process";
      export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator }
        from "@modelcontextprotocol/server/validators/cf-worker";
      export const CORS_IS_POSSIBLE = false;`,
  },
};
