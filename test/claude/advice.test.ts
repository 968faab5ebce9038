import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import { half } from "../kit/runner/amount.ts";
import { WITHOUT_DAEMON, type Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Follows the advice of each failed turn or refused call; the next attempt must succeed. */

const world = useWorld({ daemon: "never" });
const folders = () => ["--trust-dir", dirname(world.folder())];
let server: Server;
beforeAll(async () => {
  server = await world.server({ args: folders() });
});

type Script = Parameters<typeof scriptTag>[0];
const HELLO = `Go. ${scriptTag([{ text: "Hello." }])}`;
const failing = (status: 400 | 401 | 404 | 529, message = "x") => [{ error: { status, message }, times: 50 }] as Script;

const start = async (args: object, on = server) =>
  on.call("claude_code", { prompt: HELLO, cwd: world.folder(), waitMs: 40_000, ...args });
const reply = async (sessionId: string, prompt = HELLO, on = server) =>
  (await on.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 })).result;
const set = async (sessionId: string, args: object, on = server) =>
  on.call("claude_code_session", { sessionId, ...args });

/** Creates a folder with a hook that runs `command`. */
function folderWithHook(event: string, command: string): string {
  const cwd = world.folder();
  mkdirSync(join(cwd, ".claude"));
  const hooks = { [event]: [{ hooks: [{ type: "command", command }] }] };
  writeFileSync(join(cwd, ".claude/settings.json"), JSON.stringify({ hooks }));
  return cwd;
}

const OUTPUT = { type: "json_schema", schema: { type: "object", properties: { a: { type: "string" } } } };
const structured = (a: unknown) => ({ tools: [{ name: "StructuredOutput", input: { a } }] });
const READ = { tools: [{ name: "Read", input: { file_path: "/x" } }] };

interface Case {
  readonly args: () => object;
  /** Prompt that fails. Default: the first prompt. */
  readonly next?: string;
  readonly advice: RegExp;
  /** Follows `advice`; resolves with the result of the next attempt. */
  readonly follow: (sessionId: string, cwd: string) => Promise<unknown>;
}

const CASES: Readonly<Record<string, Case>> = {
  prompt_blocked: {
    args: () => ({
      cwd: folderWithHook("UserPromptSubmit", "grep -q secret && exit 2; exit 0"),
      prompt: "The secret.",
    }),
    advice: /^Change the prompt/,
    follow: async (sessionId) => reply(sessionId),
  },
  hook_stopped: {
    args: () => ({ cwd: folderWithHook("Stop", `echo '{"continue":false}'`) }),
    advice: /the hook, then reply/,
    follow: async (sessionId, cwd) => {
      rmSync(join(cwd, ".claude"), { recursive: true });
      // Claude Code reads changed settings within a second or two.
      await expect.poll(async () => (await reply(sessionId))?.isError, { timeout: 30_000 }).toBe(false);
      return reply(sessionId);
    },
  },
  command_failed: { args: () => ({ prompt: "/compact" }), advice: /another prompt/, follow: async (id) => reply(id) },
  verification_failed: {
    args: () => ({
      advanced: { verify: { commands: ["test -e mended"], attempts: 0 } },
      // Verification takes the permission of a command, which the mode gives.
      permissionMode: "acceptEdits",
      allowedTools: ["Bash"],
    }),
    advice: /^Read the output of the last command in verification, then reply/,
    follow: async (sessionId, cwd) => {
      const write = { name: "Write", input: { file_path: join(cwd, "mended"), content: "" } };
      return reply(sessionId, `Mend it. ${scriptTag([{ tools: [write] }, { text: "Mended." }])}`);
    },
  },
  structured_output_missing: {
    args: () => ({ advanced: { outputFormat: OUTPUT } }),
    advice: /^Reply and ask/,
    follow: async (sessionId) => reply(sessionId, `Again. ${scriptTag([structured("b")])}`),
  },
  error_max_structured_output_retries: {
    args: () => ({
      advanced: { outputFormat: OUTPUT },
      prompt: `Go. ${scriptTag(Array.from({ length: 9 }, () => structured(1)))}`,
    }),
    advice: /^Reply and ask/,
    follow: async (sessionId) => reply(sessionId, `Again. ${scriptTag([structured("b")])}`),
  },
  error_max_budget_usd: {
    args: () => ({ advanced: { maxBudgetUsd: 0.001 }, allowedTools: ["Read"], prompt: scriptTag([READ, READ, READ]) }),
    advice: /^Reply to continue/,
    follow: async (sessionId) => reply(sessionId),
  },
  "api_error, without a connection": {
    args: () => ({ prompt: `Go. ${scriptTag([{ cut: true, text: ["It", " broke."], times: 50 }])}` }),
    advice: /^Check the network/,
    follow: async (sessionId) => reply(sessionId),
  },
  prompt_too_long: {
    args: () => ({ advanced: { env: { DISABLE_AUTO_COMPACT: "1" } } }),
    next: `Go. ${scriptTag(failing(400, "prompt is too long: 210000 tokens > 200000 maximum"))}`,
    advice: /reply with \/compact, then with the prompt/,
    follow: async (sessionId) => {
      expect(await reply(sessionId, "/compact")).toMatchObject({ isError: false });
      return reply(sessionId);
    },
  },
  error_max_turns: {
    args: () => ({
      maxTurns: 1,
      allowedTools: ["Read"],
      prompt: scriptTag([READ]),
    }),
    advice: /^Reply to continue/,
    follow: async (sessionId) => reply(sessionId),
  },
  "api_error, of a model that there is not": {
    args: () => ({ model: "nope", prompt: `Go. ${scriptTag(failing(404, "model: nope"))}` }),
    advice: /set_model/,
    follow: async (sessionId) => {
      await set(sessionId, { action: "set_model", model: "sonnet" });
      return reply(sessionId);
    },
  },
  "api_error, without a login": {
    args: () => ({ prompt: `Go. ${scriptTag(failing(401))}` }),
    advice: /^Log in/,
    follow: async (sessionId) => reply(sessionId),
  },
  "api_error, overloaded": {
    args: () => ({ prompt: `Go. ${scriptTag(failing(529))}` }),
    advice: /then reply/,
    follow: async (sessionId) => reply(sessionId),
  },
  unknown_agent: {
    args: () => ({ cwd: folderWithHook("Notification", "true"), advanced: { agent: "scout" } }),
    advice: /once there is such an agent/,
    follow: async (sessionId, cwd) => {
      mkdirSync(join(cwd, ".claude/agents"));
      writeFileSync(join(cwd, ".claude/agents/scout.md"), "---\nname: scout\ndescription: Looks.\n---\nLook.\n");
      expect((await start({ advanced: { agent: "general-purpose" } })).result).toMatchObject({ isError: false });
      return reply(sessionId);
    },
  },
  init_timeout: {
    args: () => ({ cwd: folderWithHook("SessionStart", "sleep 3"), advanced: { sessionInitTimeoutMs: 1500 } }),
    advice: /sessionInitTimeoutMs/,
    follow: async (_, cwd) => (await start({ cwd, advanced: { sessionInitTimeoutMs: 30_000 } })).result,
  },
};

describe("advice of failed turns", () => {
  it.each(half(Object.entries(CASES)))(
    "following the advice for %s gets through",
    async (name, { advice, args, follow, next }) => {
      const cwd = world.folder();
      const given = { cwd, ...args() };
      const { result: first, sessionId } = await start(given);
      const result = next === undefined ? first : await reply(sessionId, next);
      expect(result).toMatchObject({ isError: true, errorSubtype: name.replace(/,.*/, "") });
      expect(result).toMatchObject({ advice: expect.stringMatching(advice) });
      expect(await follow(sessionId, given.cwd)).toMatchObject({ isError: false });
    },
  );
});

describe("advice of refused calls", () => {
  it("following the advice for a refused schema gets through", async () => {
    const schema = z.object({ pair: z.tuple([z.string()]) });
    const format = (target: "draft-7" | "draft-2020-12") => ({
      advanced: { outputFormat: { type: "json_schema", schema: z.toJSONSchema(schema, { target }) } },
      prompt: scriptTag([{ tools: [{ name: "StructuredOutput", input: { pair: ["a"] } }] }]),
    });
    const args = { cwd: world.folder(), ...format("draft-2020-12") };
    const { code, text } = await server.refusal("claude_code", args);
    expect([code, text]).toEqual(["INVALID_ARGUMENT", expect.stringContaining("properties.pair.prefixItems: ")]);
    expect((await start(format("draft-7"))).result).toMatchObject({ structuredOutput: { pair: ["a"] } });
  });

  it("following the advice for a model that is its own fallback gets through", async () => {
    const same = { cwd: world.folder(), prompt: HELLO, model: "sonnet", advanced: { fallbackModel: "sonnet" } };
    expect((await server.refusal("claude_code", same)).text).toContain("fallbackModel: ");
    const { sessionId } = await start({ model: "opus", advanced: { fallbackModel: "sonnet" } });
    await set(sessionId, { action: "set_model", model: "sonnet" });
    // The next process starts with both models.
    await world.closeServers();
    server = await world.server({ args: folders() });
    expect(await reply(sessionId)).toMatchObject({ isError: false });
  });
});

describe("advice for bypassPermissions behind a closed gate", () => {
  const standIn = useWorld({ agent: "stand-in" });

  it("a session in bypassPermissions continues in another mode, as advised, while the gate is closed", async () => {
    const open = await standIn.server({ args: ["--allow-bypass"], env: { ...WITHOUT_DAEMON, IS_SANDBOX: "1" } });
    const cwd = standIn.folder();
    const { sessionId } = await start({ cwd, permissionMode: "bypassPermissions" }, open);
    await open.close();
    const closed = await standIn.server({ env: WITHOUT_DAEMON });
    const { code, text } = await closed.refusal("claude_code_reply", { sessionId, prompt: HELLO });
    expect([code, text]).toEqual(["PERMISSION_DENIED", expect.stringContaining("set_permission_mode")]);
    await set(sessionId, { action: "set_permission_mode", permissionMode: "default" }, closed);
    expect(await reply(sessionId, HELLO, closed)).toMatchObject({ isError: false });
  });
});
