import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { daemonStatus } from "../kit/faults/shims.ts";
import { useWorld } from "../kit/world.ts";

/** Clients of a daemon with different terms: each tries to bypass the other's terms. */

const world = useWorld({ agent: "stand-in", daemon: "never" });

const bash = (command: string) => ({ name: "Bash", input: { command } });
const running = (command: string) => scriptTag([{ tools: [bash(command)] }, { text: "Over." }]);

/**
 * Runs a turn of the looser client, queues a prompt of the stricter client behind it, and holds the prompt with `interrupt`.
 */
async function heldPrompt(looser: string[], stricter: string[]) {
  const daemon = await world.daemon();
  const [loose, strict] = [await daemon.client({ args: looser }), await daemon.client({ args: stricter })];
  const cwd = world.folder();
  const begun = scriptTag([{ gateBefore: "an interrupt", text: "Begun." }]);
  const { sessionId } = await loose.call("claude_code", { prompt: begun, cwd });
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  await strict.call("claude_code_reply", { sessionId, prompt: running("touch made"), whenBusy: "queue" });
  await loose.call("claude_code_session", { action: "interrupt", sessionId });
  await loose.end(sessionId);
  return { loose, strict, sessionId, made: join(cwd, "made") };
}

it.each([
  ["bypassPermissions", ["--allow-bypass"], []],
  ["acceptEdits", [], ["--caller-approves", "none"]],
])("a looser client cannot set %s for a held prompt of a stricter client", async (permissionMode, looser, stricter) => {
  const { loose, made, sessionId, strict } = await heldPrompt(looser, stricter);
  const mode = { action: "set_permission_mode", sessionId, permissionMode };
  const refused = await loose.refusal("claude_code_session", mode);
  await loose.call("claude_code_session", { action: "release_queue", sessionId });
  await loose.news(sessionId);
  expect(existsSync(made)).toBe(false);
  expect(refused).toMatchObject({ code: "PERMISSION_DENIED" });
  await loose.call("claude_code_session", { action: "interrupt", sessionId });
  await loose.end(sessionId);
  // Once the stricter prompt is done, the session's own client may set the mode.
  await loose.call("claude_code_reply", { sessionId, prompt: scriptTag([{ text: "Own." }]) });
  await loose.end(sessionId);
  await loose.call("claude_code_session", mode);
  await strict.close();
});

it("a settings file that is not a regular file stops a new daemon, but not a client of a running daemon", async () => {
  const home = world.folder();
  const [folder, fifo] = [world.folder(), join(world.folder(), "claude-agents-mcp")];
  mkdirSync(fifo);
  expect(spawnSync("mkfifo", [join(fifo, "config.json")]).status).toBe(0);
  const env = { HOME: home, XDG_CONFIG_HOME: dirname(fifo) };
  const refused = world.shared({ client: "legacy", env });
  await expect(refused).rejects.toThrow("config.json cannot be read: it is not a regular file");
  const first = await world.shared({ env: { HOME: home, XDG_CONFIG_HOME: folder } });
  await first.call("claude_code_session", { action: "list" });
  const second = await world.shared({ env });
  await second.call("claude_code_session", { action: "list" });
  expect(daemonStatus(home)).toHaveLength(1);
  await Promise.all([first.close(), second.close()]);
});

it("a client with a large environment has sessions of its own, and does not disturb those of other clients", async () => {
  const daemon = await world.daemon();
  const first = await daemon.client();
  const over = { prompt: scriptTag([{ text: "Over." }]), waitMs: 40_000 };
  const { sessionId } = await first.call("claude_code", { ...over, cwd: world.folder() });
  const variables = Array.from({ length: 11 }, (_, at) => [`LARGE_${String(at)}`, "x".repeat(120_000)]);
  const large = await daemon.client({ env: Object.fromEntries(variables) as Record<string, string> });
  expect(await large.call("claude_code", { ...over, cwd: world.folder() })).toMatchObject({
    result: { result: "Over.", isError: false },
  });
  expect(await first.call("claude_code_reply", { ...over, sessionId })).toMatchObject({ result: { result: "Over." } });
  expect(daemon.stderr()).not.toContain("a shim is frozen");
  await Promise.all([first.close(), large.close()]);
});
