import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, it } from "vitest";

import { bundledClaudes } from "../../src/claude/claude-files.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer, ClientKind } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { callOnce, startOuterClaude } from "../kit/clients/outer-claude.ts";
import { connectTo, type Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Plays the demo's whole story over HTTP, through third-party clients. */

const world = useWorld({ agent: "stand-in" });
let shared: HttpServer;
beforeAll(async () => {
  shared = await world.http();
});

interface Caller {
  call(tool: string, args: Record<string, unknown>): Promise<Answer>;
}

const writing = (file: string, last: string) =>
  scriptTag([{ tools: [{ name: "Write", input: { file_path: file, content: "Hello." } }] }, { text: last }]);

/** Decides the open request; resolves with the answer at the end of the turn. */
async function decide(client: Caller, sessionId: string, cursor: number, decision: object): Promise<Answer> {
  const asked = await client.call("claude_code_check", { action: "poll", sessionId, cursor, waitMs: 40_000 });
  expect(asked).toMatchObject({ status: "waiting_permission", actions: [{ type: "permission", toolName: "Write" }] });
  const { requestId } = asked.actions[0]!;
  const answer = { action: "respond_permission", sessionId, requestId, cursor: asked.nextCursor, ...decision };
  return client.call("claude_code_check", { ...answer, until: "end", waitMs: 40_000 });
}

/** Plays the story; resolves with the id of the then idle session. */
async function expectStory(client: Caller): Promise<string> {
  const cwd = world.folder();
  const [wanted, unwanted] = [join(cwd, "hello.txt"), join(cwd, "forbidden.txt")];
  // Names the wait, because the default of Claude Code is that of a whole turn.
  const started = await client.call("claude_code", { prompt: writing(wanted, "Written."), cwd, waitMs: 0 });
  const { sessionId } = started;
  expect(started.status).toBe("running");
  const allowed = await decide(client, sessionId, started.nextCursor, { decision: "allow" });
  expect(allowed).toMatchObject({ status: "idle", actions: [], result: { result: "Written.", isError: false } });
  expect(readFileSync(wanted, "utf8")).toBe("Hello.");

  const prompt = scriptTag([{ text: "I wrote it." }]);
  const replied = await client.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
  expect(replied).toMatchObject({ sessionId, status: "idle", result: { result: "I wrote it." } });

  const other = { sessionId, prompt: writing(unwanted, "I may not."), waitMs: 0 };
  const third = await client.call("claude_code_reply", other);
  const denied = await decide(client, sessionId, third.nextCursor, { decision: "deny", denyMessage: "Not this one." });
  expect(denied).toMatchObject({ status: "idle", result: { result: "I may not." } });
  expect(existsSync(unwanted)).toBe(false);
  const { sessions } = await client.call("claude_code_session", { action: "get", sessionId });
  expect(sessions).toMatchObject([{ sessionId, status: "idle", processStarts: 1 }]);
  return sessionId;
}

describe("the demo's story over HTTP", () => {
  it("the story works through claude -p, whose model calls our tools", async () => {
    // Claude Code driven by a program would hand a form to that program, which shows none: only `caller` approves.
    const server = await world.http({ args: ["--approvals", "caller"] });
    const claude = await startOuterClaude(world.folder(), server);
    await expectStory(claude);
    const offered = claude.tools().filter((name) => name.startsWith("mcp__"));
    const own = ["claude_code", "claude_code_check", "claude_code_reply", "claude_code_session"];
    expect(offered.toSorted()).toEqual(own.map((name) => `mcp__agents__${name}`));
    await claude.close();
  });

  it("claude -p waits in one call, where other clients have to poll", async () => {
    const prompt = scriptTag([{ text: "At last.", gateBefore: "waited" }]);
    const begun = world.model.waitForRequest(({ lastUserText }) => lastUserText.includes("waited"));
    const start = { prompt, cwd: world.folder(), waitMs: 1_800_000 };
    const called = callOnce(world.folder(), shared, "claude_code", start);
    await begun;
    world.model.release("waited");
    expect(await called).toMatchObject({ status: "idle", result: { result: "At last.", isError: false } });
    const other = await shared.connect("modern");
    const refused = await other.refusal("claude_code", start);
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining("at most 45000") });
    await other.client.close();
  });

  it.each(["2026-07-28", "2025-11-25"] as const)("the story works through a client held to %s", async (revision) => {
    const connection = await shared.connect(revision);
    const { client } = connection;
    expect(client instanceof Client && client.getNegotiatedProtocolVersion()).toBe(revision);
    await expectStory(connection);
    await client.close();
  });
});

describe("install claude-code", () => {
  it("install claude-code connects the real Claude Code to this server until uninstall", () => {
    const home = world.folder();
    const env = { PATH: process.env["PATH"], HOME: home, CLAUDE_CODE_MCP_DAEMON: "off" };
    const said = (program: string, ...args: string[]) =>
      execFileSync(program, args, { cwd: home, env, encoding: "utf8", input: "" });
    const main = resolve("dist/cli/main.js");
    const [claude = "claude"] = bundledClaudes();
    said(process.execPath, main, "install", "claude-code", "--yes");
    expect(said(claude, "mcp", "list")).toMatch(/^claude-agents-mcp: .*main\.js - .* Connected$/m);
    said(process.execPath, main, "uninstall", "claude-code", "--yes");
    expect(said(claude, "mcp", "list")).not.toContain("claude-agents-mcp");
  });
});

const require = createRequire(import.meta.url);
const MCP_REMOTE = join(dirname(require.resolve("mcp-remote/package.json")), "dist/proxy.js");

/** Connects `mcp-remote` between a stdio client and our server. */
async function bridged(kind: ClientKind, { token, url }: HttpServer): Promise<Server> {
  const header = ["--header", `Authorization: Bearer ${token}`];
  const home = mkdtempSync(join(world.folder(), "bridge-"));
  return connectTo(kind, [MCP_REMOTE, url, "--allow-http", "--transport", "http-only", ...header], {
    HOME: home,
    MCP_REMOTE_CONFIG_DIR: home,
  });
}

describe("mcp-remote", () => {
  it.each(["modern", "v1"] as const)("the story works through mcp-remote for a %s client over stdio", async (kind) => {
    const client = await bridged(kind, shared);
    await expectStory(client);
    await client.close();
  });

  it("mcp-remote survives a restart or a kill of the server: the next call resumes its MCP session", async () => {
    const store = ["--store", `${world.folder()}/store.db`];
    const first = await world.http({ args: store });
    const client = await bridged("legacy", first);
    const again = [...store, "--http", new URL(first.url).host];
    const prompt = (text: string) => scriptTag([{ text }]);
    const started = { prompt: prompt("before"), cwd: world.folder(), waitMs: 40_000 };
    const { sessionId } = await client.call("claude_code", started);
    const reply = async (text: string) =>
      (await client.call("claude_code_reply", { sessionId, prompt: prompt(text), waitMs: 40_000 })).result?.result;
    await first.close();
    const second = await world.http({ args: again });
    expect(second.url).toBe(first.url);
    expect(await reply("after a restart")).toBe("after a restart");

    second.signal("SIGKILL");
    await second.exited;
    // A call while there is no server fails: there is no silent retry.
    await expect(reply("lost")).rejects.toThrow("fetch failed");
    await world.http({ args: again });
    expect(await reply("after a kill")).toBe("after a kill");
    await client.close();
  });
});
