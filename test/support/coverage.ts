/**
 * Code that a test file executes, for `npm run test:coverage`: in this process by the profiler, in all Node processes that it starts by
 * NODE_V8_COVERAGE, which Node hands on to children whatever their environment. Each test file has a folder of its own.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join, relative } from "node:path";
import { afterAll, expect } from "vitest";

/** One for all files of a worker: the profiler counts from its start. */
const shared = globalThis as { profiler?: Promise<Profiler> };

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
