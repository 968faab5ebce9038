// Bundles src/ to dist/: what a command needs at once is one file, and what it may need later another. The page of the console
// goes from console/ to dist/console. Types are looked at by `npm run check:types`.
// Usage: node scripts/build.mjs [--watch] [--source-maps]
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, watch } from "rolldown";
import { build as buildPage } from "vite";
import { noticesOf } from "./notices.mjs";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");

/** What is started, or imported, by its path. */
const ENTRIES = ["cli/main", "claude/supervise/reaper-process", "demo/model/script", "demo/model/server"];

/**
 * What is loaded together is one file, with all that it imports and no file before it has. Code that names a file beside
 * it (`import.meta.url`) has its chunk where its source is, so that both find it.
 */
const CHUNKS = [
  { name: "claude/supervise/tree", test: /src\/claude\/supervise\/tree\.ts$/ },
  // The reaper needs it as well, and nothing of what else is loaded with the engine.
  { name: "claude/supervise/marked", test: /src\/claude\/supervise\/(mark|marked)\.ts$/ },
  { name: "claude/supervise/reaper", test: /src\/claude\/supervise\/reaper\.ts$/ },
  // Alone, since --version needs nothing else.
  { name: "config/version", test: /src\/config\/version\.ts$/ },
  { name: "cli/serve", test: /src\/cli\/serve\.ts$/ },
  { name: "tools/toolsets", test: /src\/(tools\/toolsets|mcp\/resources\/(library|resource-answers)|mcp\/tools)\.ts$/ },
  { name: "cli/console", test: /src\/cli\/console\.ts$/ },
  { name: "engine/engine", test: /src\/(app\/engine|engine\/clock|store\/(former-folder|open))\.ts$/ },
  { name: "http/server", test: /src\/app\/http\.ts$/ },
  { name: "demo/model", test: /src\/demo\/model\/(script|server)\.ts$/ },
  { name: "cli/demo", test: /src\/cli\/demo\.ts$/ },
].map((chunk, at, { length }) => ({ ...chunk, priority: length - at }));

/** Not in the bundle: the SDK finds its binary beside itself, SQLite is optional and native, pino is loaded with the first line. */
const EXTERNAL = [/^@anthropic-ai\//, "@photostructure/sqlite", "pino"];

/**
 * The MCP SDK comes with two checkers of JSON Schema and takes the larger one wherever it runs on Node: 290 KB that are
 * compiled and run before `initialize`, for forms that this server does not ask clients to fill in.
 */
const lightValidator = {
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

/** Of the page, whose licences stand beside the server's. */
const pageModules = [];

/** For `npm run test:coverage`, which reads them there: they are no part of what is published. */
const maps = join(root, "coverage/maps");
const withMaps = process.argv.includes("--source-maps");

const finish = {
  name: "finish",
  writeBundle(_, bundle) {
    for (const file of Object.keys(bundle).filter((name) => name.endsWith(".map"))) {
      mkdirSync(dirname(join(maps, file)), { recursive: true });
      renameSync(join(dist, file), join(maps, file));
    }
    chmodSync(join(dist, "cli/main.js"), 0o755);
    writeFileSync(join(dist, "THIRD-PARTY-NOTICES.txt"), noticesOf([...modulesOf(bundle), ...pageModules]));
  },
};

function modulesOf(bundle) {
  return Object.values(bundle).flatMap((chunk) => Object.keys(chunk.modules ?? {}));
}

const options = {
  cwd: root,
  platform: "node",
  input: Object.fromEntries(ENTRIES.map((entry) => [entry, `src/${entry}.ts`])),
  external: EXTERNAL,
  plugins: [lightValidator, finish],
  output: {
    dir: dist,
    entryFileNames: "[name].js",
    chunkFileNames: ({ name }) => (name.includes("/") ? "[name].js" : "chunks/[name].js"),
    codeSplitting: { groups: CHUNKS },
    // Half of what the MCP SDK is made of; each byte is read at every start. Names stay: stacks are to be readable.
    comments: { legal: true, annotation: false, jsdoc: false },
    // Not named in the files: what runs is the same with and without them.
    sourcemap: withMaps && "hidden",
  },
};

rmSync(dist, { recursive: true, force: true });
const notePage = { name: "note-page", writeBundle: (_, bundle) => void pageModules.push(...modulesOf(bundle)) };
await buildPage({ configFile: join(root, "console/vite.config.ts"), logLevel: "warn", plugins: [notePage] });
if (process.argv.includes("--watch")) {
  watch(options).on("event", (event) => {
    if (event.code === "ERROR") console.error(event.error);
    if (event.code === "BUNDLE_END") console.log(`built in ${event.duration} ms`);
    if ("result" in event) void event.result.close();
  });
} else {
  await build(options);
}
