import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { ErrorCode } from "../../src/domain/error.ts";
import type { Failure } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const write = { name: "Write", input: { file_path: "note.txt", content: "x" } };

/** Starts a session with an open request. */
async function startAsking() {
  const { sessionId } = await server.call("claude_code", {
    prompt: scriptTag([{ tools: [write] }, { text: "ok" }]),
    cwd: world.folder(),
  });
  const { actions } = await server.news(sessionId);
  return { sessionId, requestId: actions[0]?.requestId };
}

async function cancel(sessionId: string): Promise<void> {
  await server.call("claude_code_session", { action: "cancel", sessionId });
}

/** Returns the error of a turn. The call succeeds; `result` has the code of the error. */
async function endOf(starter: Server, args: object): Promise<Failure> {
  const { result } = await starter.call("claude_code", { cwd: world.folder(), waitMs: 40_000, ...args });
  return { code: String(result?.["code"]), text: `${result?.errorSubtype ?? ""}: ${result?.result ?? ""}` };
}

/** Calls by error code, each with a part of the message. */
const CASES: Readonly<Record<ErrorCode, Readonly<Record<string, readonly [() => Promise<Failure>, RegExp]>>>> = {
  INVALID_ARGUMENT: {
    "a misspelt option": [
      async () => server.refusal("claude_code", { prompt: "x", advanced: { efort: "low" } }),
      /advanced\.efort: unknown option\. Did you mean effort\?/,
    ],
  },
  SESSION_NOT_FOUND: {
    "a session that does not exist": [
      async () =>
        server.refusal("claude_code_reply", { sessionId: "00000000-0000-4000-8000-000000000000", prompt: "x" }),
      /There is no session 00000000-.* claude_code_session/,
    ],
  },
  SESSION_BUSY: {
    "a prompt while a turn runs": [
      async () => {
        const { sessionId } = await startAsking();
        const refused = await server.refusal("claude_code_reply", { sessionId, prompt: "and this" });
        await cancel(sessionId);
        return refused;
      },
      /busy.*claude_code_check/,
    ],
  },
  PERMISSION_DENIED: {
    "a mode that the operator does not allow": [
      async () => server.refusal("claude_code", { prompt: "x", permissionMode: "bypassPermissions" }),
      /--allow-bypass/,
    ],
  },
  PERMISSION_REQUEST_NOT_FOUND: {
    "the second answer to a request": [
      async () => {
        const { sessionId, requestId } = await startAsking();
        const answer = { action: "respond_permission", sessionId, requestId };
        await server.call("claude_code_check", { ...answer, decision: "deny" });
        return server.refusal("claude_code_check", { ...answer, decision: "allow" });
      },
      /deny|denied/,
    ],
  },
  TIMEOUT: {
    "a Claude Code that does not come up": [
      async () => {
        const path = join(world.folder(), "claude");
        writeFileSync(path, "#!/bin/sh\nexec sleep 600\n");
        chmodSync(path, 0o755);
        return endOf(server, { prompt: "x", pathToClaudeCodeExecutable: path, sessionInitTimeoutMs: 500 });
      },
      /^init_timeout: /,
    ],
    "a turn that takes longer than the operator allows": [
      async () => {
        const hasty = await world.server({ args: ["--turn-max-ms", "1000"] });
        return endOf(hasty, { prompt: scriptTag([{ text: "too late", gateBefore: "never-released" }]) });
      },
      /^time_limit: /,
    ],
  },
  CANCELLED: {
    "a prompt for a session that was cancelled": [
      async () => {
        const { sessionId } = await startAsking();
        await cancel(sessionId);
        return server.refusal("claude_code_reply", { sessionId, prompt: "x" });
      },
      /cancelled/,
    ],
  },
  INTERNAL: {
    "a start with a store that cannot be written": [
      async () => {
        const file = join(world.folder(), "file");
        writeFileSync(file, "");
        const broken = await world.server({ args: ["--store", join(file, "store.db")] });
        return broken.refusal("claude_code", { prompt: "x", cwd: world.folder() });
      },
      /cannot be written.*--store/,
    ],
  },
};

describe.each(Object.entries(CASES))("calls that fail with %s", (code, calls) => {
  it.each(Object.entries(calls))(`%s is ${code}`, async (_, [call, says]) => {
    const failure = await call();
    expect(failure.code).toBe(code);
    expect(failure.text).toMatch(says);
  });
});
