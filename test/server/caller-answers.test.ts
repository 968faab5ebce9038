import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { send, signIn } from "../kit/clients/console-client.ts";
import { post, type HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { LATE_RETRY, startReceiver, WITH_SECRET, type ReceiverServer } from "../kit/clients/webhook-receiver.ts";
import { toolCalls, fillForm, FakeUser, writeCall } from "../kit/people/fake-user.ts";
import { useWorld } from "../kit/world.ts";

/** Tests the bound of `--caller-approves` on every interface: a program never counts as a person. */

const users = namedUsers({
  ann: { scopes: ["read", "run", "approve"] },
  ada: { scopes: ["read", "run", "approve"], attended: true },
  dee: { scopes: ["read", "run", "approve", "decide"] },
  max: { scopes: ["read", "run"] },
});

const world = useWorld({ agent: "stand-in" });
let receiver: ReceiverServer;
let http: HttpServer;
beforeAll(async () => {
  receiver = await startReceiver(({ response }) => void response.writeHead(500).end());
  const told = ["--notify-url", receiver.url, "--no-attended"];
  const approvalChain = ["--approvals", "user,webhook:400000,console,caller", "--caller-approves", "edits"];
  http = await world.http({
    args: [...users.args, ...told, ...approvalChain],
    env: { ...WITH_SECRET, ...LATE_RETRY },
  });
});
afterAll(async () => {
  await receiver.close();
});

const bearer = (token: string) => post({ decision: "allow" }, { authorization: `Bearer ${token}` });

/** Starts a session of `user` with an open request for a command. */
async function asking(user: keyof typeof users.tokens) {
  const client = await http.connect("modern", users.tokens[user]);
  const cwd = world.folder();
  const ran = join(cwd, "ran");
  const prompt = toolCalls([{ name: "Bash", input: { command: `node -e 'fs.writeFileSync("${ran}", "")'` } }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd });
  const { actions } = await client.news(sessionId);
  const requestId = actions[0]?.requestId ?? "";
  return { client, sessionId, requestId, hasRun: () => existsSync(ran), end: async () => client.end(sessionId) };
}

describe("a command, with --caller-approves edits", () => {
  it("a command beyond --caller-approves is allowed by a person who signs in, and by no token alone", async () => {
    const { client, end, hasRun, requestId, sessionId } = await asking("ann");
    const ann = bearer(users.tokens.ann);
    const atConsole = await send(http, `api/sessions/${sessionId}/requests/${requestId}`, ann);
    expect([atConsole.status, await atConsole.text()]).toEqual([
      403,
      expect.stringContaining("sign in at the console"),
    ]);
    const atWebhook = await http.fetch(`/requests/${sessionId}/${requestId}`, ann);
    expect([atWebhook.status, await atWebhook.text()]).toEqual([403, expect.stringContaining("scope decide")]);
    const byTool = { action: "respond_permission", sessionId, requestId, decision: "allow" };
    expect((await client.refusal("claude_code_check", byTool)).code).toBe("PERMISSION_DENIED");
    // A cookie without the key of its page identifies no user; beside a token, only the token counts.
    const signed = await signIn(http, users.tokens.ann);
    const path = `sessions/${sessionId}/requests/${requestId}`;
    const both = { ...signed.headers, authorization: `Bearer ${users.tokens.ann}` };
    expect((await signed.post(path, { decision: "allow" }, both)).status).toBe(403);
    expect(hasRun()).toBe(false);
    expect((await signed.post(path, { decision: "allow" })).status).toBe(200);
    await end();
    expect(hasRun()).toBe(true);
  });

  it("a command beyond --caller-approves is allowed by a token with the scope decide", async () => {
    const routes = [
      async (path: string) =>
        (await send(http, `api/sessions/${path.replace("/", "/requests/")}`, bearer(users.tokens.dee))).status,
      async (path: string) => (await http.fetch(`/requests/${path}`, bearer(users.tokens.dee))).status,
    ];
    for (const route of routes) {
      const { end, hasRun, requestId, sessionId } = await asking("dee");
      expect(await route(`${sessionId}/${requestId}`)).toBe(200);
      await end();
      expect(hasRun()).toBe(true);
    }
  });

  it("a command beyond --caller-approves is shown in a form at an attended client only, an edit at any client", async () => {
    for (const [user, isAttended] of [
      ["ann", false],
      ["ada", true],
    ] as const) {
      const fakeUser = new FakeUser();
      fakeUser.does = fillForm({ decision: "allow" });
      const client = await http.connect("modern", users.tokens[user], fakeUser.person);
      const cwd = world.folder();
      const [edited, ran] = [join(cwd, "edited"), join(cwd, "ran")];
      const command = `node -e 'fs.writeFileSync("${ran}", "")'`;
      const prompt = toolCalls([writeCall(edited), { name: "Bash", input: { command } }]);
      const { sessionId } = await client.call("claude_code", { prompt, cwd, waitMs: 40_000 });
      expect(existsSync(edited)).toBe(true);
      expect(fakeUser.seen).toHaveLength(isAttended ? 2 : 1);
      expect(existsSync(ran)).toBe(isAttended);
      if (!isAttended) await client.call("claude_code_session", { action: "cancel", sessionId });
    }
  });
});

it("revoking a remembered answer at the console needs the scope approve", async () => {
  const revoke = async (token: string) =>
    send(http, "api/sessions/none/revoke", post({}, { authorization: `Bearer ${token}` }));
  expect((await revoke(users.tokens.max)).status).toBe(403);
  expect(await (await revoke(users.tokens.ann)).json()).toMatchObject({ error: "not_found" });
});
