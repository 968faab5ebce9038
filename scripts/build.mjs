// Bundles src/ to dist/: one file per command for code needed at once, other files for code needed later. Builds the page of
// the console from console/ to dist/console. `npm run check:types` checks types.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build, watch } from "rolldown";
import { build as buildPage } from "vite";
import { readArguments } from "./arguments.mjs";
import { lightValidator } from "./light-validator.mjs";
import { noticesOf } from "./notices.mjs";

const USAGE = `Usage: node scripts/build.mjs [--watch]

--watch  builds again after each change of the sources, until you press Ctrl-C`;

const { values } = readArguments(USAGE, { options: { watch: { type: "boolean" } } });
const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");

/** Entry points that are started or imported by path. */
const ENTRIES = [
  "cli/main",
  "claude/supervise/reaper-process",
  "claude/watch/walk-process",
  "doctor/store-process",
  "demo/model/script",
  "demo/model/server",
];

/** Writes the static answers of a proxy. Runs once during the build, which then removes the program. */
const ANSWERS = "app/static-answers";

/**
 * Chunks of modules that are loaded together, with all imports that no earlier chunk has. A module that names a file beside it
 * (`import.meta.url`) has its chunk at the path of its source, so that source and chunk find the file.
 */
const CHUNKS = [
  // Separate, because `--version` and the proxy need nothing else of the server.
  {
    name: "config/version",
    files: [
      "config/cache-folder",
      "config/constants",
      "config/error",
      "config/paths",
      "config/settings-file",
      "config/state-folder",
      "config/store-spelling",
      "config/version",
      "security/ancestors",
      "security/paths",
      "tools/arguments/wait-limits",
      "tools/tool-names",
      "tools/query/description",
    ],
  },
  { name: "claude/supervise/tree", files: ["claude/supervise/tree"] },
  // Separate, because the reaper needs this chunk, but nothing else that is loaded with the engine.
  {
    name: "claude/supervise/tagged-processes",
    files: ["claude/supervise/process-tag", "claude/supervise/tagged-processes"],
  },
  { name: "claude/supervise/reaper", files: ["claude/supervise/reaper"] },
  // Separate, because the program that walks a folder needs nothing else that is loaded with the engine.
  { name: "claude/watch/stamp", files: ["claude/watch/stamp", "claude/watch/walk-tree"] },
  { name: "claude/watch/walk", files: ["claude/watch/walk"] },
  // Separate, because each client starts a proxy, without schemas and the MCP SDK.
  { name: "proxy/proxy", files: ["proxy/serve-through-daemon", "proxy/own-server"] },
  { name: "security/key-file", files: ["security/key-file"] },
  // Loaded after the first static answers.
  { name: "proxy/daemon", files: ["proxy/automatic-daemon"] },
  { name: "cli/serve", files: ["cli/serve"] },
  // After `cli/serve`, from which this chunk would otherwise import zod.
  { name: "claude/shim/shims", files: ["claude/shim/shims"] },
  // Shared by engine and tools, because a daemon is ready before the tools are loaded.
  {
    name: "domain/options",
    files: [
      "domain/command",
      "domain/options",
      "domain/options/traits",
      "engine/ports",
      "engine/policy/bound",
      "engine/session/wait",
    ],
  },
  // Shared by commands.
  { name: "cli/own-flags", files: ["cli/confirm", "cli/own-flags"] },
  {
    name: "tools/toolsets",
    files: ["tools/toolsets", "mcp/resources/library", "mcp/resources/resource-answers", "mcp/tool-answers"],
  },
  { name: "cli/console", files: ["cli/console"] },
  { name: "engine/engine", files: ["app/engine", "app/system-clock", "engine/clock", "store/open"] },
  { name: "cli/install", files: ["cli/install"] },
  { name: "install/json-format", files: ["install/json-format"] },
  { name: "install/toml-format", files: ["install/toml-format"] },
  { name: "cli/daemon", files: ["cli/daemon"] },
  { name: "doctor/machine", files: ["doctor/checks", "doctor/machine"] },
  { name: "http/server", files: ["app/http"] },
  { name: "demo/model", files: ["demo/model/script", "demo/model/server"] },
  { name: "cli/demo", files: ["cli/demo"] },
].map(({ files, name }, at, { length }) => {
  const paths = files.map((file) => join(root, "src", `${file}.ts`));
  // A file that was renamed would silently move to another chunk, and be loaded at another time.
  const missing = paths.find((path) => !existsSync(path));
  if (missing !== undefined) throw new Error(`${missing}: there is no such file. Mend CHUNKS in scripts/build.mjs.`);
  return { name, test: (id) => paths.includes(id), priority: length - at };
});

/** Not bundled: the SDK finds its binary beside itself, SQLite is optional and native, and PostgreSQL is for few. */
const EXTERNAL = [/^@anthropic-ai\//, "@photostructure/sqlite", "pg"];

/**
 * Bundles pino, which runs with the first line of the log. The bundler sees only a plain `require`, which no module of Node
 * has.
 */
const withPino = {
  name: "with-pino",
  transform: {
    filter: { id: /src\/log\/logger\.ts$/ },
    handler(code) {
      const without = code.replace(/^const require\b.*createRequire\(import\.meta\.url\);$/m, "");
      if (without === code) throw new Error("src/log/logger.ts has no require of its own any more");
      // Leaves an empty line, so that the source map stays right.
      return { code: without, map: null };
    },
  },
};

/** Bundles only the memory limiter: the index also has the limiters of a dozen databases, and CommonJS has no tree to shake. */
const withMemoryLimiter = {
  name: "with-memory-limiter",
  transform: {
    filter: { id: /rate-limiter-flexible\/index\.js$/ },
    handler: () => ({
      code: ["Memory", "Res"]
        .map((part) => `exports.RateLimiter${part} = require("./lib/RateLimiter${part}");`)
        .join("\n"),
      map: { mappings: "" },
    }),
  },
};

/** Modules of the page, for their licences. */
const pageModules = [];

/** Small, because the first start downloads all files. Errors keep the names of their classes. */
const MINIFY = { compress: true, mangle: { keepNames: { function: false, class: true } }, codegen: true };

const finish = {
  name: "finish",
  writeBundle(_, bundle) {
    keepSmall(bundle);
    chmodSync(join(dist, "cli/main.js"), 0o755);
    writeFileSync(join(dist, "THIRD-PARTY-NOTICES.txt"), noticesOf([...modulesOf(bundle), ...pageModules]));
  },
};

/** Writes files that depend on the whole bundle. */
function complete() {
  const program = join(dist, `${ANSWERS}.js`);
  writeFileSync(join(dist, "proxy/answers.json"), execFileSync(process.execPath, [program]));
  rmSync(dirname(program), { recursive: true });
  writeFileSync(join(dist, "build-id.txt"), buildId());
}

/** Throws if a chunk that each client loads imports the server. */
function keepSmall(bundle) {
  const small = ["cli/main.js", "config/version.js", "proxy/daemon.js", "proxy/proxy.js", "security/key-file.js"];
  for (const name of small) {
    const others = bundle[name].imports.filter((each) => each in bundle && !small.includes(each));
    if (others.length > 0) throw new Error(`${name} imports ${others.join(", ")}, which the proxy must not load`);
  }
}

/** Returns a digest of all files, so that clients of different builds get different daemons. */
function buildId() {
  const digest = createHash("sha256");
  const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.name !== "build-id.txt",
  );
  for (const file of files.map(({ name, parentPath }) => join(parentPath, name)).toSorted()) {
    digest.update(relative(dist, file)).update(readFileSync(file));
  }
  return digest.digest("hex").slice(0, 32);
}

function modulesOf(bundle) {
  return Object.values(bundle).flatMap((chunk) => Object.keys(chunk.modules ?? {}));
}

const options = {
  cwd: root,
  platform: "node",
  input: Object.fromEntries([...ENTRIES, ANSWERS].map((entry) => [entry, `src/${entry}.ts`])),
  external: EXTERNAL,
  // `main` of jsonc-parser is UMD with its own `require`, which no bundler can follow.
  resolve: { alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" } },
  plugins: [lightValidator, withPino, withMemoryLimiter, finish],
  output: {
    dir: dist,
    entryFileNames: "[name].js",
    chunkFileNames: ({ name }) => (name.includes("/") ? "[name].js" : "chunks/[name].js"),
    codeSplitting: { groups: CHUNKS },
    // Halves the size of the MCP SDK, which is read at every start.
    comments: { legal: true, annotation: false, jsdoc: false },
    minify: MINIFY,
  },
};

/**
 * Bundle of the shim: one file without imports, because a shim runs on after the package is deleted. Built first, because the
 * build id includes the file.
 */
const shim = {
  cwd: root,
  platform: "node",
  input: { "shim/shim": "src/shim/main.ts" },
  output: {
    dir: dist,
    entryFileNames: "[name].js",
    comments: options.output.comments,
    minify: MINIFY,
  },
};

rmSync(dist, { recursive: true, force: true });
const notePage = { name: "note-page", writeBundle: (_, bundle) => void pageModules.push(...modulesOf(bundle)) };
await buildPage({ configFile: join(root, "console/vite.config.ts"), logLevel: "warn", plugins: [notePage] });
if (values.watch) {
  watch([shim, options]).on("event", (event) => {
    if (event.code === "ERROR") console.error(event.error);
    if (event.code === "BUNDLE_END") console.log(`built in ${event.duration} ms`);
    // Waits for the bundle of the server, because the bundle of the shim ends with an event too.
    if (event.code === "BUNDLE_END" && existsSync(join(dist, `${ANSWERS}.js`))) complete();
    if ("result" in event) void event.result.close();
  });
} else {
  await build(shim);
  await build(options);
  complete();
}
