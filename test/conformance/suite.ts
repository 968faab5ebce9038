import { spawn } from "node:child_process";
import { once } from "node:events";
import fs, { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { SUITE, type Revision } from "./listed.ts";

/** Runs the protocol's own conformance suite, a command. */

const Check = z.looseObject({
  id: z.string(),
  status: z.enum(["SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"]),
  errorMessage: z.string().optional(),
});
export type Check = z.infer<typeof Check>;

/** Checks by scenario. */
export type Outcomes = ReadonlyMap<string, readonly Check[]>;

/** Time limit of a scenario, ms; some take 6,000 on a quiet machine. */
const SCENARIO_MS = 60_000;

/** Runs all scenarios of the revision on the server at `url`, sequentially. Throws if none ran. */
export async function runSuite(url: string, revision: Revision): Promise<Outcomes> {
  return run(url, ["--requirements", revision]);
}

/** Returns the checks of `scenario`. */
export async function runScenario(url: string, revision: Revision, scenario: string): Promise<readonly Check[]> {
  const outcomes = await run(url, ["--scenario", scenario, "--spec-version", revision, "--force"]);
  return outcomes.get(scenario) ?? [];
}

async function run(url: string, which: readonly string[]): Promise<Outcomes> {
  const folder = mkdtempSync(join(tmpdir(), "ccm-conformance-"));
  const what = ["server", "--url", url, ...which, "--timeout", String(SCENARIO_MS), "-o", folder];
  const suite = spawn(process.execPath, [...forThisNode(), join(SUITE, "dist/index.js"), ...what]);
  let output = "";
  for (const stream of [suite.stdout, suite.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  try {
    // The exit code is ignored, because scenarios listed in not-ours.json fail too.
    await once(suite, "close");
    const outcomes = new Map(readdirSync(folder).map((name) => outcomeIn(folder, name)));
    if (outcomes.size === 0) throw new Error(`the suite ran nothing: ${output.slice(-2_000)}`);
    return outcomes;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function forThisNode(): string[] {
  return "globSync" in fs ? [] : ["--import", "./test/conformance/node-20.mjs"];
}

/** Reads the folder `server-SCENARIO-TIME` of the suite; an empty folder means that the scenario threw. */
function outcomeIn(folder: string, name: string): [string, Check[]] {
  const scenario = name.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "");
  const file = join(folder, name, "checks.json");
  if (!existsSync(file)) return [scenario, [{ id: "scenario-threw", status: "FAILURE" }]];
  return [scenario, z.array(Check).parse(JSON.parse(readFileSync(file, "utf8")))];
}
