import { basename } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { jsonBytes } from "../../src/view/size.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let closed: Server;
let open: Server;
beforeAll(async () => {
  closed = await world.server();
  open = await world.server({ env: { CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: "1" } });
});

const VARIABLE = "CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS";

async function start(server: Server, what: string, args: object = {}) {
  const prompt = `${what} ${scriptTag([{ text: "done" }])}`;
  return server.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000, ...args });
}

/** Returns the session ids on a page of a list, and the token of the next page. */
async function page(server: Server, args: object): Promise<{ ids: string[]; next: unknown }> {
  const answer = await server.call("claude_code_session", { action: "list", ...args });
  return { ids: answer.sessions.map(({ sessionId }) => sessionId), next: answer["nextPageToken"] };
}

describe("a list of `claude_code_session`", () => {
  it("a list is narrowed by `status` and time (`since`), and read in pages (`limit`, `pageToken`), from any server", async () => {
    const before = Date.now();
    const started: string[] = [];
    for (const name of ["one", "two", "three"]) started.unshift((await start(closed, name)).sessionId);
    await closed.call("claude_code_session", { action: "cancel", sessionId: started[2] });
    const since = new Date(before).toISOString();

    expect((await page(open, { status: "cancelled", since })).ids).toEqual([started[2]]);
    const idle = await page(closed, { status: ["idle", "error"], since, limit: 1 });
    expect(idle.ids).toEqual([started[0]]);
    const rest = await page(open, { status: ["idle", "error"], since, limit: 1, pageToken: idle.next });
    expect(rest).toEqual({ ids: [started[1]], next: undefined });
    expect(await page(closed, { since: Date.now() + 60_000 })).toEqual({ ids: [], next: undefined });
  });

  it("a list is narrowed by folder (`cwd`) and words (`text`) if the operator allows it (`includeSensitive`)", async () => {
    const cwd = world.folder();
    const { sessionId } = await start(closed, "Mend the flux compensator.", { cwd, advanced: { title: "Flux" } });
    expect((await page(open, { cwd })).ids).toEqual([sessionId]);
    expect((await page(open, { text: "FLUX compensator" })).ids).toEqual([sessionId]);
    // The user's own client learns title and folder name, but neither path nor prompt.
    const own = (await closed.call("claude_code_session", { action: "list", limit: 1 })).sessions[0];
    expect(own).toMatchObject({ sessionId, status: "idle", title: "Flux", folder: basename(cwd) });
    expect(JSON.stringify(own)).not.toMatch(/compensator|\//);
    expect(jsonBytes(own)).toBeLessThanOrEqual(300);
    for (const args of [{ cwd }, { text: "flux" }, { includeSensitive: true }]) {
      const { code, text } = await closed.refusal("claude_code_session", { action: "list", ...args });
      expect(code).toBe("PERMISSION_DENIED");
      expect(text).toContain(VARIABLE);
    }
  });
});

describe("the plain and the sensitive tier", () => {
  it("the plain tier hides folder and prompt, the sensitive tier shows both, and neither shows a secret", async () => {
    const cwd = world.folder();
    const secret = "sk-ant-secret-in-a-prompt";
    const inline = { type: "http", url: "http://127.0.0.1:9/y", headers: { Authorization: "value-of-inline-header" } };
    const args = {
      cwd,
      model: "claude-sonnet-4-5",
      permissionMode: "acceptEdits",
      systemPrompt: `Be brief. ${secret}`,
      advanced: {
        agents: { helper: { description: "helps", prompt: "Help.", mcpServers: [{ own: inline }] } },
        additionalDirectories: [world.folder()],
        env: { GIVEN: "value-of-env" },
        mcpServers: {
          tracker: { type: "http", url: "http://127.0.0.1:9/x", headers: { Authorization: "value-of-header" } },
        },
      },
    };
    const { sessionId } = await start(closed, "Tell me.", args);
    const got = await closed.call("claude_code_session", { action: "get", sessionId });
    expect(got.sessions[0]).toMatchObject({
      sessionId,
      status: "idle",
      requested: { model: "claude-sonnet-4-5", permissionMode: "acceptEdits" },
      reported: { model: "claude-sonnet-4-5", permissionMode: "acceptEdits" },
      lastOutcome: "done",
      pending: 0,
      queued: 0,
    });
    expect(JSON.stringify(got)).not.toMatch(/Be brief|helper|Tell me|value-of/);
    expect(JSON.stringify(got)).not.toContain(cwd);

    const whole = await open.call("claude_code_session", { action: "get", sessionId, includeSensitive: true });
    expect(whole.sessions[0]).toMatchObject({
      ...got.sessions[0],
      cwd,
      prompt: expect.stringContaining("Tell me.") as string,
      systemPrompt: "Be brief. [masked]",
      agents: { helper: { description: "helps", prompt: "Help.", mcpServers: [{ own: { type: "http" } }] } },
      additionalDirectories: args.advanced.additionalDirectories,
      mcpServers: { tracker: { type: "http" } },
      leftOut: [
        "env",
        "mcpServers.*.url",
        "mcpServers.*.headers",
        "agents.*.mcpServers.*.url",
        "agents.*.mcpServers.*.headers",
      ],
    });
    expect(JSON.stringify(whole)).not.toMatch(/value-of|sk-ant/);

    const refused = await closed.refusal("claude_code_session", { action: "get", sessionId, includeSensitive: true });
    expect(refused.code).toBe("PERMISSION_DENIED");
    expect(refused.text).toContain(`${VARIABLE}=1`);
  });

  it("a session shows its background task while idle", async () => {
    const input = { command: "sleep 300", run_in_background: true, description: "long shell" };
    const { sessionId } = await closed.call("claude_code", {
      prompt: scriptTag([{ tools: [{ name: "Bash", input }] }, { text: "It runs." }]),
      cwd: world.folder(),
      allowedTools: ["Bash"],
      waitMs: 40_000,
    });
    const got = await closed.call("claude_code_session", { action: "get", sessionId });
    expect(got.sessions[0]).toMatchObject({
      status: "idle",
      processLive: true,
      background: [{ id: expect.any(String) as string, type: expect.any(String) as string }],
    });
    await closed.call("claude_code_session", { action: "cancel", sessionId });
  });
});
