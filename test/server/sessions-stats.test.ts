import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag, type Script } from "../../src/demo/model/script.ts";
import {
  addSession,
  HOUR,
  id,
  NOW,
  promptEvent,
  expectedRefusal,
  runSessions,
  seed,
} from "../kit/clients/sessions-command.ts";
import { useWorld } from "../kit/world.ts";

let root: string;
const world = useWorld({ agent: "stand-in", daemon: "never" });
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-stats-")));
});
afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});

const Spread = z.object({ median: z.number(), p95: z.number(), max: z.number() });
const Stats = z.looseObject({
  turns: z.looseObject({ durationMs: Spread, costUsd: z.number().positive(), waitedMs: z.number().positive() }),
  tokens: z.looseObject({ input: z.number().positive(), output: z.number().positive() }),
  models: z.array(z.object({ model: z.string(), costUsd: z.number().positive() })).min(1),
});

async function stats(...args: string[]) {
  const { status, stdout, stderr } = await runSessions(["stats", "--json", ...args]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return JSON.parse(stdout) as unknown;
}

describe("`sessions stats` of sessions that have run", () => {
  it("`sessions stats` counts successes, denials, retries and failures, with a running server and without", async () => {
    const store = ["--store", join(root, "real.db")];
    const server = await world.server({ args: store });
    const cwd = world.folder();
    const write = { name: "Write", input: { file_path: join(cwd, "a.txt"), content: "a" } };
    const script: Script = [{ error: { status: 529 } }, { tools: [write] }, { text: "Refused." }];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd });
    const asked = await server.news(sessionId);
    expect(await stats(...store)).toMatchObject({
      sessions: { total: 1, byStatus: { waiting_permission: 1 } },
      turns: { total: 0, errorRate: null, durationMs: null },
      requests: { open: 1, answered: [] },
    });
    const answer = { action: "respond_permission", sessionId, cursor: asked.nextCursor, decision: "deny" };
    await server.call("claude_code_check", { ...answer, requestId: asked.actions[0]?.requestId });
    const bad = scriptTag([{ error: { status: 401, times: 99 } }]);
    expect(await server.call("claude_code_reply", { sessionId, prompt: bad, waitMs: 40_000 })).toMatchObject({
      status: "error",
    });
    await server.close();
    await world.quiet(15_000);

    const told = await stats(...store);
    expect(told).toMatchObject({
      sessions: { total: 1, byStatus: { error: 1 } },
      turns: {
        total: 2,
        failures: 1,
        errorRate: 0.5,
        byOutcome: { done: 1, failed: 1 },
        failuresByCategory: { access: 1 },
      },
      requests: { open: 0, answered: [{ kind: "permission", decision: "deny", by: "caller", count: 1 }] },
      crashes: 0,
    });
    const { models, turns } = Stats.parse(told);
    expect(turns.waitedMs).toBeLessThanOrEqual(turns.durationMs.max);
    expect(models.reduce((sum, { costUsd }) => sum + costUsd, 0)).toBeCloseTo(turns.costUsd, 6);
    const { apiRetries, tools } = z.looseObject({ apiRetries: z.number(), tools: z.array(z.unknown()) }).parse(told);
    expect(apiRetries).toBeGreaterThanOrEqual(1);
    expect(new Set(tools)).toEqual(
      new Set([
        expect.objectContaining({ tool: "claude_code", total: 1, errorRate: 0 }),
        expect.objectContaining({ tool: "claude_code_reply", total: 1, errorRate: 1 }),
      ]),
    );

    const page = await runSessions(["--stats", ...store]);
    expect(page).toMatchObject({ status: 0, stderr: "" });
    expect(page.stdout).toMatch(/^Turns +2: 1 done, 1 failed\nErrors +50\.0%: 1 access\n/m);
    expect(page.stdout).toMatch(/^claude_code_reply +1 +100\.0% /m);
    expect(page.stdout).toMatch(/^permission +deny +caller +1 /m);
    expect(await runSessions(["stats", "--cwd", "/elsewhere", ...store])).toMatchObject({
      stdout: "No session matches.\n",
    });
  });
});

describe("`sessions stats`", () => {
  it("`sessions stats` can be limited to a folder, and to sessions changed since a time", async () => {
    const store = await seed(join(root, "seeded.db"), async (node) => {
      for (const n of [0, 1, 2, 3]) {
        const seeded = { at: NOW - n * HOUR, cwd: n % 2 === 0 ? "/even" : "/odd", events: [promptEvent("x")] };
        await addSession(node, id(n), seeded);
      }
    });
    expect(await stats(...store)).toMatchObject({ sessions: { total: 4 } });
    expect(await stats("--cwd", "/odd", ...store)).toMatchObject({ sessions: { total: 2 }, cwd: "/odd" });
    expect(await stats("--since", "90m", ...store)).toMatchObject({ sessions: { total: 2 } });
    const spelled = await runSessions(["--since", "90m", "--json", "--stats", "--cwd", "/even", ...store]);
    expect(JSON.parse(spelled.stdout)).toMatchObject({ sessions: { total: 1 } });
  });

  it("`sessions stats` is empty without a store, and creates none", async () => {
    const none = ["--store", join(root, "none.db")];
    expect(await stats(...none)).toMatchObject({ sessions: { total: 0, byStatus: {} }, turns: { errorRate: null } });
    expect(await runSessions(["stats", ...none])).toEqual({ status: 0, stdout: "No session matches.\n", stderr: "" });
    expect(await runSessions(["list", ...none])).toMatchObject({
      stdout: expect.stringContaining("there is no") as string,
    });
  });

  it.each([
    [["stats", "--sinse", "1d"], "sessions stats: .* Did you mean --since\\? It takes --cwd, --since, --json, "],
    [["--stats", "--since", "soon"], '--since is "soon": must be like'],
    [["stats", "0000"], "sessions stats: Unexpected argument '0000'"],
  ])("`sessions stats` refuses %j", async (args, line) => {
    expect(await runSessions(args)).toEqual(expectedRefusal(2, line));
  });
});
