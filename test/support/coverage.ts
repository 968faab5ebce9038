/**
 * Code that a test file executes, for `npm run test:coverage`: in this process by the profiler, in all Node processes that it starts by
 * NODE_V8_COVERAGE, which Node hands on to children whatever their environment. Each test file has a folder of its own. What is killed
 * writes its counts first (`coverage-before-kill.mjs`), where its environment is handed on.
 */
import childProcess from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Session } from "node:inspector/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect } from "vitest";

/** One for all files of a worker: the profiler counts from its start. */
const shared = globalThis as { profiler?: Promise<Profiler> };

const HOOK_FILE = join(import.meta.dirname, "coverage-before-kill.mjs");
const HOOK = `--import=${HOOK_FILE}`;

type Start = (...words: unknown[]) => unknown;

/** Programs that are started with an environment of their own get the hook as well. */
async function hookChildren(): Promise<void> {
  process.env["NODE_OPTIONS"] = withHook(process.env["NODE_OPTIONS"]);
  const starts = childProcess as unknown as Record<string, Start & { readonly [promisify.custom]?: Start }>;
  const hooked = (words: unknown[]): unknown[] => words.map((word) => (hasEnvironment(word) ? withHookIn(word) : word));
  for (const name of ["execFile", "execFileSync", "fork", "spawn", "spawnSync"]) {
    const start = starts[name]!;
    const promised = start[promisify.custom];
    const patched: Start = (...words) => start(...hooked(words));
    if (promised) Object.assign(patched, { [promisify.custom]: (...words: unknown[]) => promised(...hooked(words)) });
    starts[name] = patched;
  }
  syncBuiltinESMExports();
  await import(HOOK_FILE);
}

function hasEnvironment(word: unknown): word is { env: NodeJS.ProcessEnv } {
  return typeof word === "object" && word !== null && !Array.isArray(word) && "env" in word && word.env !== undefined;
}

function withHookIn<T extends { env: NodeJS.ProcessEnv }>(options: T): T {
  return { ...options, env: { ...options.env, NODE_OPTIONS: withHook(options.env["NODE_OPTIONS"]) } };
}

function withHook(options = ""): string {
  return options.includes(HOOK) ? options : `${options} ${HOOK}`.trim();
}

interface Profiler {
  readonly session: Session;
  readonly sources: Map<string, Promise<string>>;
}

async function startProfiler(): Promise<Profiler> {
  const session = new Session();
  session.connect();
  const sources = new Map<string, Promise<string>>();
  session.on("Debugger.scriptParsed", ({ params: { scriptId, url } }) => {
    if (!url.includes("/src/") || url.includes("/node_modules/")) return;
    // At once: a script may be gone later.
    const source = session.post("Debugger.getScriptSource", { scriptId });
    sources.set(
      scriptId,
      source.then(({ scriptSource }) => scriptSource),
    );
  });
  await session.post("Debugger.enable");
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  return { session, sources };
}

const testFile = relative(process.cwd(), expect.getState().testPath ?? "");
const folder = join(process.env["COVERAGE_FOLDER"] ?? "", encodeURIComponent(testFile));
mkdirSync(folder, { recursive: true });
process.env["NODE_V8_COVERAGE"] = folder;
if (!shared.profiler) await hookChildren();
shared.profiler ??= startProfiler();
const { session, sources } = await shared.profiler;
// What was executed since belongs to the file before.
await session.post("Profiler.takePreciseCoverage");

afterAll(async () => {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const scripts = result.filter(({ scriptId }) => sources.has(scriptId));
  const withSource = await Promise.all(
    scripts.map(async (script) => ({ ...script, source: await sources.get(script.scriptId) })),
  );
  writeFileSync(join(folder, "test-process.json"), JSON.stringify({ result: withSource }));
});
