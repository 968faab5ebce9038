import { existsSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, beforeEach, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Connection } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { readWholeLog } from "../kit/sessions/one-turn.ts";
import { callOnce } from "../kit/clients/outer-claude.ts";
import { toolCalls, decisions, fillForm, FakeUser, writeCall } from "../kit/people/fake-user.ts";
import { useWorld } from "../kit/world.ts";

const users = namedUsers({ ann: { scopes: ["read", "run", "approve"] }, bob: { scopes: ["read", "run"] } });

const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
beforeAll(async () => {
  http = await world.http({ args: users.args });
});

describe("a form, and the client and call that show it", () => {
  const fakeUser = new FakeUser();
  let server: Connection;
  beforeAll(async () => {
    server = await http.connect("modern", http.token, fakeUser.person);
  });
  beforeEach(() => void (fakeUser.seen.length = 0));

  it("a form is shown by a poll, for the session that asks, and not by a call that does not wait", async () => {
    const cwd = world.folder();
    const [quiet, asking] = [
      scriptTag([{ text: "slow", gateBefore: "never" }]),
      toolCalls([writeCall(join(cwd, "a"))]),
    ];
    const one = await server.call("claude_code", { prompt: quiet, cwd });
    const other = await server.call("claude_code", { prompt: asking, cwd });
    fakeUser.does = fillForm({ decision: "deny", message: "Not there." });
    const sessions = [one, other].map(({ sessionId }) => ({ sessionId }));
    const several = await server.call("claude_code_check", { action: "poll", sessions, waitMs: 40_000 });
    expect(several).toMatchObject({ sessions: [{ status: "running" }, { status: "idle" }] });
    expect(fakeUser.seen).toHaveLength(1);
    const next = await server.call("claude_code_reply", { sessionId: other.sessionId, prompt: asking });
    let status = next.status;
    while (status === "running") {
      status = (await server.call("claude_code_check", { action: "poll", sessionId: other.sessionId, waitMs: 0 }))
        .status;
    }
    expect(status).toBe("waiting_permission");
    expect(fakeUser.seen).toHaveLength(1);
    await server.call("claude_code_session", { action: "cancel", sessionId: one.sessionId });
  });

  it("a form shows hidden characters escaped, and says how much of a long text it leaves out", async () => {
    const cwd = world.folder();
    const content = `\u001b[2Jhi \u202e\nRisk: none\n${"x".repeat(5_000)}; the end`;
    const prompt = toolCalls([{ name: "Write", input: { content, file_path: join(cwd, "a") } }]);
    fakeUser.does = fillForm({ decision: "deny" });
    await server.call("claude_code", { prompt, cwd, waitMs: 40_000 });
    const { message } = fakeUser.seen[0]!;
    for (const hidden of ["\u001b", "\u202e"]) expect(message).not.toContain(hidden);
    expect(message).toContain("\\x1b[2Jhi \\u{202e}");
    // Indented, so that no line of the input looks like a line of the form.
    expect(message).toContain("\n    Risk: none");
    expect(message).toMatch(/\[cut: \d+ characters are not shown\]/);
    expect(message).toContain("; the end");
    expect(message.length).toBeLessThan(4_000);
  });

  it("a request goes to the caller if the client shows no forms", async () => {
    const client = await http.connect();
    const cwd = world.folder();
    const start = { prompt: toolCalls([writeCall(join(cwd, "a"))]), cwd, waitMs: 40_000 };
    const { sessionId, status } = await client.call("claude_code", start);
    expect(status).toBe("waiting_permission");
    const { actions } = await client.news(sessionId);
    expect(actions).toMatchObject([{ toolName: "Write" }]);
    await client.close();
  });

  it("a form is not shown to a caller whose answer would not count", async () => {
    fakeUser.does = () => ({ action: "cancel" });
    for (const [name, forms] of [
      ["ann", 1],
      ["bob", 0],
    ] as const) {
      const client = await http.connect("modern", users.tokens[name], fakeUser.person);
      fakeUser.seen.length = 0;
      const cwd = world.folder();
      const start = { prompt: toolCalls([writeCall(join(cwd, "a"))]), cwd, waitMs: 40_000 };
      expect((await client.call("claude_code", start)).status).toBe("waiting_permission");
      expect(fakeUser.seen).toHaveLength(forms);
      await client.close();
    }
  });
});

describe.each(["modern", "legacy"] as const)(
  "a %s client that declines each form at once, without a person",
  (client) => {
    // Retries, because on a busy machine the client declines later than the 300 ms that count as at once.
    const options = { retry: 3 };
    it(
      "a form declined at once denies nothing: the caller is asked, and no form follows in this turn or the next",
      options,
      async () => {
        const fakeUser = new FakeUser();
        fakeUser.does = () => ({ action: "decline" });
        const server = await http.connect(client, http.token, fakeUser.person);
        const cwd = world.folder();
        const files = ["a", "b", "c"].map((name) => join(cwd, name));
        const begin = { prompt: toolCalls(files.slice(0, 2).map(writeCall)), cwd, waitMs: 40_000 };
        let asked = await server.call("claude_code", begin);
        const { sessionId } = asked;
        for (let allowed = 0; allowed < 2; allowed += 1) {
          expect(asked).toMatchObject({ status: "waiting_permission" });
          const { actions } = await server.news(sessionId);
          expect(actions).toHaveLength(1);
          expect(actions[0]).not.toHaveProperty("waitsFor");
          const allow = {
            action: "respond_permission",
            sessionId,
            requestId: actions[0]?.requestId,
            decision: "allow",
          };
          asked = await server.call("claude_code_check", { ...allow, waitMs: 40_000 });
        }
        expect(asked).toMatchObject({ result: { result: "Over." } });
        const reply = { sessionId, prompt: toolCalls([writeCall(files[2]!)]), waitMs: 40_000 };
        expect(await server.call("claude_code_reply", reply)).toMatchObject({ status: "waiting_permission" });
        expect(fakeUser.seen).toHaveLength(1);
        expect(files.map((file) => existsSync(file))).toEqual([true, true, false]);
        expect(decisions(await readWholeLog(server, sessionId))).toEqual([
          ["allow", "caller"],
          ["allow", "caller"],
        ]);
        await server.close();
      },
    );
  },
);

describe("claude -p, which closes its forms at once", () => {
  it("claude -p gets a request as the caller, in the same answer", async () => {
    const cwd = world.folder();
    const start = { prompt: toolCalls([writeCall(join(cwd, "a"))]), cwd, waitMs: 40_000 };
    const { sessionId, status } = await callOnce(world.folder(), http, "claude_code", start);
    expect(status).toBe("waiting_permission");
    const client = await http.connect();
    const { events } = await readWholeLog(client, sessionId);
    const asked = await client.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(asked.actions).toMatchObject([{ toolName: "Write" }]);
    expect(asked.actions[0]).not.toHaveProperty("waitsFor");
    expect(JSON.stringify(events)).toContain("Write");
  });
});
