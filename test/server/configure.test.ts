import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });

const CONFIGURE = "claude_code_configure";

let auditLog: string;
let server: Server;
beforeAll(async () => {
  auditLog = join(world.folder(), "audit.jsonl");
  const args = ["--toolsets", "agent,chat,configure", "--audit-log", auditLog];
  server = await world.server({ args, env: { IS_SANDBOX: "1" } });
});

const change = async (action: string) => (await stream(server, CONFIGURE, { action })).data;

it("`action` of `claude_code_configure` switches the bypass gate for new turns, and not for a running one", async () => {
  const start = { cwd: world.folder(), permissionMode: "bypassPermissions", waitMs: 40_000 };
  const ran = join(start.cwd, "ran.txt");
  const run = { tools: [{ name: "Bash", input: { command: `touch ${ran}` } }], gateBefore: "gate is closed" };
  const prompt = scriptTag([run, { text: "ok" }]);

  expect(await change("get_config")).toEqual({
    allowBypass: false,
    message: expect.stringContaining("refused") as string,
  });
  const refused = await server.refusal("claude_code", { prompt, ...start });
  expect(refused.code).toBe("PERMISSION_DENIED");
  expect(refused.text).toContain("or claude_code_configure with action enable_bypass");
  expect(await change("enable_bypass")).toMatchObject({ allowBypass: true });
  const { sessionId } = await server.call("claude_code", { prompt, ...start, waitMs: 0 });
  const poll = { action: "poll", sessionId, waitMs: 0, responseMode: "full" };
  await expect.poll(async () => JSON.stringify(await server.call("claude_code_check", poll))).toContain('"init"');
  const off = await change("disable_bypass");
  expect(off).toMatchObject({ allowBypass: false });
  expect(off["message"]).toContain("continues to its end");
  world.model.release("gate is closed");
  expect(await server.end(sessionId)).toMatchObject({ status: "idle", result: { result: "ok", isError: false } });
  expect(existsSync(ran)).toBe(true);
  expect(await server.refusal("claude_code_reply", { sessionId, prompt })).toMatchObject({ code: "PERMISSION_DENIED" });
  expect(await change("get_config")).toMatchObject({ allowBypass: false });
  expect(await server.refusal(CONFIGURE, { action: "bypass" })).toMatchObject({ code: "INVALID_ARGUMENT" });
  const audit = server
    .stderr()
    .split("\n")
    .filter((line) => line.includes("audit"));
  expect(audit.map((line) => JSON.parse(line) as object)).toMatchObject([
    { allowed: true, before: false, principal: "local" },
    { allowed: false, before: true, principal: "local" },
  ]);

  const entries = readFileSync(auditLog, "utf8").trim().split("\n");
  const told = entries.map((line) => JSON.parse(line) as Record<string, string>);
  const bypass = { tool: "claude_code", permissionMode: "bypassPermissions" };
  expect(told).toMatchObject([
    { ...bypass, principal: "local", outcome: "PERMISSION_DENIED" },
    { tool: CONFIGURE, action: "enable_bypass", allowBypass: true, outcome: "ok" },
    { ...bypass, sessionId, outcome: "ok" },
    { tool: CONFIGURE, action: "disable_bypass", allowBypass: false, outcome: "ok" },
    { tool: "claude_code_reply", sessionId, outcome: "PERMISSION_DENIED" },
    { tool: CONFIGURE, outcome: "INVALID_ARGUMENT" },
  ]);
  expect(told.every(({ time = "" }) => Math.abs(Date.parse(time) - Date.now()) < 120_000)).toBe(true);
  expect(entries.join("")).not.toContain("touch");
  expect(statSync(auditLog).mode & 0o777).toBe(0o600);
});

it("nothing begins in bypassPermissions once the gate is closed: no queued prompt, no turn of Claude Code's own", async () => {
  await change("enable_bypass");
  const folder = world.folder();
  const start = { cwd: folder, permissionMode: "bypassPermissions" };
  const path = (name: string) => join(folder, name);
  const ran = (name: string) => existsSync(path(name));
  const touch = (name: string) => ({ tools: [{ name: "Bash", input: { command: `touch ${path(name)}` } }] });
  const shell = (name: string) => {
    const command = `until [ -e ${path(name)} ]; do sleep 0.05; done`;
    return { tools: [{ name: "Bash", input: { command, run_in_background: true } }] };
  };
  // Session `running` has a queued prompt and a shell; session `idle` would begin a turn at the end of its shell.
  const work = [shell("never"), { ...touch("running"), gateBefore: "running goes on" }, { text: "ok" }];
  const { sessionId: running } = await server.call("claude_code", { prompt: scriptTag(work), ...start });
  const queued = scriptTag([touch("queued"), { text: "ok" }]);
  await server.call("claude_code_reply", { sessionId: running, prompt: queued, whenBusy: "queue" });
  const idles = [shell("shell ends"), { text: "I wait." }, touch("self"), { text: "ok" }];
  const { sessionId: idle } = await server.call("claude_code", { prompt: scriptTag(idles), ...start });
  await server.end(idle);

  const off = await change("disable_bypass");
  expect(off["message"]).toContain("2 sessions");
  writeFileSync(path("shell ends"), "");
  world.model.release("running goes on");
  const ended = await server.end(running);
  expect(ended).toMatchObject({ status: "idle", result: { result: "ok", isError: false } });
  for (const sessionId of [running, idle]) {
    const session = async () => (await server.call("claude_code_session", { action: "get", sessionId })).sessions[0];
    await expect.poll(async () => (await session())?.["processLive"]).toBe(false);
    const told = (await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 })).events;
    expect(JSON.stringify(told)).toContain("no longer allows");
    expect(await server.refusal("claude_session_create", { sessionId })).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(await server.refusal("claude_code_session", { action: "release_queue", sessionId })).toMatchObject({
      code: "PERMISSION_DENIED",
    });
  }
  expect([ran("running"), ran("queued"), ran("self")]).toEqual([true, false, false]);

  // In another mode the session goes on, with the held prompt.
  const mode = { action: "set_permission_mode", sessionId: running, permissionMode: "acceptEdits" };
  await server.call("claude_code_session", mode);
  await server.call("claude_code_session", { action: "release_queue", sessionId: running });
  expect(await server.end(running)).toMatchObject({ status: "idle", result: { result: "ok" } });
  expect(ran("queued")).toBe(true);
});

it("`claude_code_configure` is listed only if the operator lists it; an unknown toolset stops the server", async () => {
  const { tools } = await (await world.server()).client.listTools();
  expect(tools.map(({ name }) => name)).not.toContain(CONFIGURE);
  const wrong = spawnSync(process.execPath, ["dist/cli/main.js", "serve", "--toolsets", "configuer"]);
  expect(wrong.stderr.toString()).toMatch(/^.*--toolsets is \["configuer"\]: must be some of agent, query, .*\n$/);
  expect(wrong.status).toBe(2);
});
