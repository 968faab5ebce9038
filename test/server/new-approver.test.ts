import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { decisions, toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { fileDrop } from "../kit/file-drop/file-drop.ts";
import type { HttpConnection } from "../kit/servers/http-server.ts";
import { buildWith, run } from "../kit/servers/server-with.ts";
import { useWorld } from "../kit/world.ts";

/** An approver that the server lacks, added by a folder and a line, from which everything else follows. */

const world = useWorld({ agent: "stand-in" });
let copy: string;
beforeAll(() => {
  copy = world.folder();
  buildWith(copy, "file-drop", "fileDrop");
}, 300_000);

/** Starts the copy with `approvals` and without any other approver. */
async function start(approvals: string, ...more: string[]) {
  const drop = world.folder();
  const bound = ["--approvals", approvals, "--drop-folder", drop];
  const http = await world.http({ args: [...bound, ...more], through: ["env", "-C", copy] });
  return { http, drop, client: await http.connect() };
}

const requestsIn = (drop: string) => readdirSync(drop).filter((name) => name.endsWith(".request.json"));

/** Resolves with the request in `drop`, once written. */
async function readRequest(drop: string) {
  await expect.poll(() => requestsIn(drop)).toHaveLength(1);
  const text = readFileSync(join(drop, requestsIn(drop)[0] ?? ""), "utf8");
  return JSON.parse(text) as { requestId: string; toolName: string; input: Record<string, unknown> };
}

function decide(drop: string, requestId: string, decision: object): void {
  const draft = join(drop, "draft");
  writeFileSync(draft, JSON.stringify(decision));
  renameSync(draft, join(drop, `${requestId}.decision.json`));
}

/** Starts a turn that asks to use the tool of `make`, by default to write a file. */
async function begin(client: HttpConnection, make: (file: string) => { name: string; input: object } = writeCall) {
  const cwd = world.folder();
  const file = join(cwd, "made");
  const { sessionId } = await client.call("claude_code", { prompt: toolCalls([make(file)]), cwd });
  return { file, sessionId };
}

const touching = (file: string) => ({ name: "Bash", input: { command: `touch ${file}` } });

describe("an approver added by a folder and a line", () => {
  it("an added approver keeps the house rules, and appears in the help text and among the values of --approvals", () => {
    expect(run(copy, "scripts/check-house.mjs")).toContain("no violation");
    const help = run(copy, "dist/cli/main.js", "help", "serve").replaceAll(/\s+/g, " ");
    expect(help).toContain("--drop-folder <path>");
    const serve = (...args: string[]) => run(copy, "dist/cli/main.js", "serve", ...args);
    expect(() => serve("--approvals", "slack")).toThrow("of user, console, webhook, file-drop, caller");
    expect(() => serve("--approvals", "file-drop,caller")).toThrow("say with --drop-folder where");
    expect(() => serve("--approvals", "file-drop:1")).toThrow("the time of file-drop is 1: must be");
  });
});

describe("an added approver, before a caller who may allow nothing", () => {
  let auditLog: string;
  let made: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    auditLog = join(world.folder(), "audit.jsonl");
    made = await start("file-drop,caller", "--caller-approves", "none", "--audit-log", auditLog);
  });

  it("an added approver is offered a request, decides it, and is named wherever the decision is reported", async () => {
    const { client, drop, http } = made;
    const { file, sessionId } = await begin(client);
    const { requestId, ...request } = await readRequest(drop);
    expect(request).toMatchObject({ toolName: "Write", input: { file_path: file }, session: { principal: "local" } });
    const { actions } = await client.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(actions).toMatchObject([{ requestId, waitsFor: "file-drop" }]);
    decide(drop, requestId, { decision: "allow" });
    const { nextCursor: _, ...told } = await client.end(sessionId);
    expect(told).toMatchObject({ status: "idle" });
    expect(existsSync(file)).toBe(true);
    const whole = { action: "poll", sessionId, waitMs: 0, responseMode: "full" };
    expect(decisions(await client.call("claude_code_check", whole))).toEqual([["allow", "file-drop"]]);
    await expect.poll(() => readFileSync(auditLog, "utf8")).toContain('"decision":"allow","by":"file-drop"');
    await expect.poll(() => requestsIn(drop)).toEqual([]);
    const me = (await (await http.fetch("/console/api/me")).json()) as Record<string, unknown>;
    expect(me).toMatchObject({ approvers: { "file-drop": fileDrop.words } });
  });

  it("an added approver denies with a reason that reaches Claude Code", async () => {
    const { client, drop } = made;
    const { file, sessionId } = await begin(client);
    decide(drop, (await readRequest(drop)).requestId, { decision: "deny", denyMessage: "Not on a Friday." });
    await client.end(sessionId);
    expect(existsSync(file)).toBe(false);
    const log = { action: "poll", sessionId, waitMs: 0, responseMode: "full" };
    expect(JSON.stringify(await client.call("claude_code_check", log))).toContain("Not on a Friday.");
  });
});

describe("an added approver, before a caller who may allow everything", () => {
  it("an added approver loses a request to the next approver when its time is over", async () => {
    const { client, drop } = await start("file-drop:1000,caller");
    const late = await begin(client);
    await readRequest(drop);
    const [action] = (await client.news(late.sessionId)).actions;
    await expect.poll(() => requestsIn(drop)).toEqual([]);
    const answer = { action: "respond_permission", sessionId: late.sessionId, requestId: action?.requestId };
    await client.call("claude_code_check", { ...answer, decision: "allow", until: "end", waitMs: 40_000 });
    expect(existsSync(late.file)).toBe(true);
  });

  it("a session cannot write into an approver's folder; without the folder, the next approver is asked at once", async () => {
    const { client, drop } = await start("file-drop,caller", "--allow-rules", "Write");
    const forged = join(drop, "any.decision.json");
    const { sessionId } = await client.call("claude_code", {
      prompt: toolCalls([writeCall(forged)]),
      cwd: world.folder(),
    });
    await client.end(sessionId);
    expect(existsSync(forged)).toBe(false);
    expect(requestsIn(drop)).toEqual([]);

    rmSync(drop, { recursive: true });
    const { sessionId: later } = await begin(client, touching);
    const mine = async () => {
      const { actions } = await client.call("claude_code_check", { action: "poll", sessionId: later, waitMs: 0 });
      return actions.map(({ requestId, waitsFor }) => [requestId, waitsFor]);
    };
    // A request without `waitsFor` is the caller's.
    await expect.poll(mine).toEqual([[expect.any(String), undefined]]);
  });
});
