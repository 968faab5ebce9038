import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { amount } from "../kit/runner/amount.ts";
import { SPELLINGS } from "../kit/attacks/bash-spellings.ts";
import { runScript, readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Runs every spelling of a denied command through the real Claude Code: no marker may be created. */

const world = useWorld();
let operator: Server;
let callers: Server;
beforeAll(async () => {
  // Only `caller` could approve, and never does: commands that need approval are denied, all others run.
  const args = ["--allow-bypass", "--approvals", "caller", "--caller-approves", "all"];
  operator = await world.server({ args: [...args, "--deny-rules", "Bash(touch:*)"], env: { IS_SANDBOX: "1" } });
  callers = await world.server({ args, env: { IS_SANDBOX: "1" } });
});

const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });

/** Many calls in each answer of the model, because each request repeats the whole conversation. */
const BATCH = 50;
const scriptOf = (spellings: typeof SPELLINGS) => {
  const batches = Array.from({ length: Math.ceil(spellings.length / BATCH) }, (_, index) => ({
    tools: spellings.slice(index * BATCH, (index + 1) * BATCH).flatMap(({ command }) => bash(command).tools),
  }));
  return [...batches, bash("echo ran > ran"), { text: "end" }];
};

/** At least one spelling for each of `means`, because all rules and modes read commands alike. */
const OF_EACH_KIND = SPELLINGS.filter(({ means }, at) => means !== SPELLINGS[at - 1]?.means || at % amount(8, 1) === 0);

/** Returns results of the model's calls, except those refused by a rule or by Claude Code itself. */
function notRefused(sessionId: string, tried: number): string[] {
  const results = world.transcript(sessionId).match(/"type":"tool_result".{0,400}/g) ?? [];
  expect(results.length).toBeGreaterThan(tried);
  return results.filter(
    (result) => !/\bcommand rules?\b|control characters|requires approval|ermission to use Bash/i.test(result),
  );
}

/** Returns the markers that the session has created. */
function markersIn(cwd: string): string[] {
  return ["M", "g/M", "../M", "ran"].filter((name) => existsSync(join(cwd, name)));
}

// `SPELLINGS` for the first row, `OF_EACH_KIND` for the others; with AMOUNTS=full all for each row.
describe("spellings of `touch` under a rule that denies it", () => {
  it.each([
    ["of the operator, in bypassPermissions", () => operator, SPELLINGS, { permissionMode: "bypassPermissions" }],
    [
      "of the session (`disallowedTools`), in bypassPermissions",
      () => callers,
      OF_EACH_KIND,
      { permissionMode: "bypassPermissions", disallowedTools: ["Bash(touch *)"] },
    ],
    [
      "of the operator, in default mode with `allowedTools` Bash and no approver",
      () => operator,
      OF_EACH_KIND,
      { allowedTools: ["Bash"], advanced: { permissionPrompts: "none" } },
    ],
  ] as const)("no spelling runs under a rule %s", async (_, on, spellings, options) => {
    const cwd = world.folder();
    const { sessionId } = await runScript(on(), scriptOf(spellings), { cwd, ...options });
    await expect.poll(async () => (await readWholeLog(on(), sessionId)).status, { timeout: 60_000 }).toBe("idle");
    expect(await readWholeLog(on(), sessionId)).toMatchObject({ result: { result: "end" } });
    expect(notRefused(sessionId, spellings.length)).toEqual([expect.stringContaining("completed with no output")]);
    // Only the command that no rule covers has run.
    expect(markersIn(cwd)).toEqual(["ran"]);
  });
});

describe("tools other than Bash that run commands", () => {
  const bypass = { permissionMode: "bypassPermissions" };

  it("a command of Monitor or of a subagent is denied by the same rule", async () => {
    const cwd = world.folder();
    const monitor = { command: "t''ouch M; $'touch' M", description: "x", timeout_ms: 2000, persistent: false };
    const inner = JSON.stringify([bash("$'touch' M"), { text: "sub" }]);
    const agent = {
      description: "x",
      subagent_type: "general-purpose",
      prompt: `<model-script>${inner}</model-script>`,
    };
    const steps = [
      { tools: [{ name: "Monitor", input: monitor }] },
      { tools: [{ name: "Agent", input: { ...agent, run_in_background: false } }] },
      { text: "end" },
      { text: "end" },
    ];
    const { sessionId } = await runScript(operator, steps, { cwd, ...bypass });
    await expect.poll(async () => (await readWholeLog(operator, sessionId)).status, { timeout: 60_000 }).toBe("idle");
    expect(markersIn(cwd)).toEqual([]);
  });

  it("a skill written by the model runs no denied command while it loads", async () => {
    const cwd = world.folder();
    const skills = join(cwd, ".claude", "skills", "make");
    mkdirSync(skills, { recursive: true });
    writeFileSync(
      join(skills, "SKILL.md"),
      "---\nname: make\ndescription: d\nallowed-tools: Bash\n---\n!`$'touch' M`\n",
    );
    const trusting = await world.server({
      args: ["--allow-bypass", "--deny-rules", "Bash(touch:*)", "--trust-dir", cwd],
      env: { IS_SANDBOX: "1" },
    });
    const steps = [{ tools: [{ name: "Skill", input: { skill: "make" } }] }, { text: "end" }];
    expect(await runScript(trusting, steps, { cwd, ...bypass })).toMatchObject({ result: { result: "end" } });
    expect(markersIn(cwd)).toEqual([]);
  });
});
