import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { toolCalls, decisions, FakeUser, writeCall } from "../kit/people/fake-user.ts";
import { post, type HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import {
  LATE_RETRY,
  startReceiver,
  WITH_SECRET,
  type Delivery,
  type ReceiverServer,
} from "../kit/clients/webhook-receiver.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

/** Tests the approval chain as a whole: approvers are asked in turn, and nobody out of turn can answer. */

const users = namedUsers({ ann: { scopes: ["read", "run", "approve"] }, eve: { scopes: ["read", "run"] } });
const APPROVAL_CHAIN = "user,webhook:400000,caller";

const world = useWorld({ agent: "stand-in" });
let receiver: ReceiverServer;
let http: HttpServer;
let auditLog: string;
beforeAll(async () => {
  auditLog = join(world.folder(), "audit.jsonl");
  receiver = await startReceiver(receive);
  http = await start(APPROVAL_CHAIN);
});
afterAll(async () => {
  await receiver.close();
});

async function start(approvals: string): Promise<HttpServer> {
  const told = ["--notify-url", receiver.url, "--audit-log", auditLog];
  const rules = ["--allow-rules", "Bash(touch:*)", "--toolsets", "all"];
  return world.http({
    args: [...users.args, ...told, ...rules, "--approvals", approvals],
    env: { ...WITH_SECRET, ...LATE_RETRY },
  });
}

/** Allows a write to a file named `for-the-webhook`, and answers 500 to every other request. */
function receive({ payload, response }: Delivery): void {
  const { request } = payload;
  const isMine = String(request?.input["file_path"]).endsWith("/for-the-webhook");
  response.writeHead(request && !isMine ? 500 : 200).end();
  if (!request || !isMine) return;
  const headers = { authorization: `Bearer ${users.tokens.ann}` };
  void fetch(payload.answerUrl, post({ decision: "allow" }, headers));
}

/** Returns the entries of a session with `action` in the audit log. */
function audited(sessionId: string, action: "answered" | "passed"): Record<string, unknown>[] {
  const lines = readFileSync(auditLog, "utf8").trim().split("\n");
  const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return entries.filter((entry) => entry["sessionId"] === sessionId && entry["action"] === action);
}

it("four requests of one turn are answered by rule, form, webhook and caller, each exactly once", async () => {
  const fakeUser = new FakeUser();
  const client = await http.connect("modern", users.tokens.ann, fakeUser.person);
  const cwd = world.folder();
  const names = ["for-the-user", "for-the-webhook", "for-the-caller"];
  fakeUser.does = ({ message }) =>
    message.includes("for-the-user") ? { action: "accept", content: { decision: "allow" } } : { action: "cancel" };
  const ruled = { name: "Bash", input: { command: "touch by-rule" } };
  const prompt = toolCalls([ruled, ...names.map((name) => writeCall(join(cwd, name)))]);
  let { nextCursor, sessionId } = await client.call("claude_code", { prompt, cwd, waitMs: 40_000 });
  const isWithCaller = () => audited(sessionId, "passed").some(({ to }) => to === "caller");
  while (!isWithCaller()) ({ nextCursor } = await client.news(sessionId, nextCursor));
  const { actions } = await client.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
  expect(actions).toMatchObject([{ toolName: "Write", input: { file_path: join(cwd, "for-the-caller") } }]);
  const answer = { action: "respond_permission", sessionId, decision: "allow" };
  const { requestId } = actions[0]!;
  const done = await client.call("claude_code_check", { ...answer, requestId, until: "end", waitMs: 40_000 });
  expect(done).toMatchObject({ status: "idle", result: { result: "Over." } });
  for (const name of ["by-rule", ...names]) expect(existsSync(join(cwd, name))).toBe(true);
  expect(fakeUser.seen).toHaveLength(3);

  const by = ["rule", "user", "webhook", "caller"];
  const whole = { action: "poll", sessionId, waitMs: 0, responseMode: "full", maxBytes: 262_144 };
  const told = await client.call("claude_code_check", whole);
  expect(decisions(told)).toEqual(by.map((approver) => ["allow", approver]));
  await expect.poll(() => audited(sessionId, "answered").map((entry) => entry["by"])).toEqual(by);
  const passed = audited(sessionId, "passed").map(({ from, to, why }) => [from, to, why]);
  expect(passed).toEqual([
    ["user", "webhook", "dismissed"],
    ["user", "webhook", "dismissed"],
    ["webhook", "caller", "unreachable"],
  ]);
  for (const [index, entry] of audited(sessionId, "answered").entries()) {
    const again = await client.refusal("claude_code_check", { ...answer, requestId: entry["requestId"] });
    expect(again.text).toContain(`was already answered: allow, by ${by[index]!}.`);
  }
  await client.close();
});

describe("a person who never answers", () => {
  let short: HttpServer;
  beforeAll(async () => {
    short = await start("user:1500,caller");
  });

  it.each(["modern", "legacy"] as const)(
    "a request passes from user to caller in time when the person at a %s client never answers",
    async (kind) => {
      const fakeUser = new FakeUser();
      const asking = await short.connect(kind, users.tokens.ann, fakeUser.person);
      const caller = await short.connect("modern", users.tokens.ann);
      let shown = (): void => undefined;
      const isShown = new Promise<void>((resolve) => (shown = resolve));
      fakeUser.does = async () => {
        shown();
        return new Promise(() => undefined);
      };
      const cwd = world.folder();
      const file = join(cwd, "a");
      const begun = await asking.call("claude_code", { prompt: toolCalls([writeCall(file)]), cwd });
      const { sessionId } = begun;
      void asking.news(sessionId).catch(() => undefined);
      await isShown;
      await expect
        .poll(() => audited(sessionId, "passed"))
        .toMatchObject([{ from: "user", to: "caller", why: "time" }]);
      const { actions } = await caller.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
      const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
      await caller.call("claude_code_check", { ...answer, until: "end", waitMs: 40_000 });
      expect(existsSync(file)).toBe(true);
      await asking.close();
    },
  );
});

it("a caller without the scope approve cannot approve by options, forms, answers or the webhook's endpoint", async () => {
  const fakeUser = new FakeUser();
  fakeUser.does = () => ({ action: "accept", content: { decision: "allow" } });
  const eve = await http.connect("modern", users.tokens.eve, fakeUser.person);
  const cwd = world.folder();
  const file = join(cwd, "a");
  const prompt = toolCalls([writeCall(file)]);
  const options = { cwd, permissionMode: "acceptEdits", allowedTools: ["Write"] };
  const begun = await eve.call("claude_code", { prompt, ...options, waitMs: 40_000 });
  const { sessionId } = begun;
  expect(begun["warnings"]).toHaveLength(2);
  await expect.poll(() => audited(sessionId, "passed").map(({ to }) => to)).toEqual(["caller"]);
  const { actions } = await eve.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
  const requestId = actions[0]?.requestId;
  const setMode = { type: "setMode", mode: "acceptEdits", destination: "session" };
  for (const how of [
    { decision: "allow" },
    { decision: "allow_for_session" },
    { decision: "allow", permissionOptions: { updatedPermissions: [setMode] } },
  ]) {
    const answer = { action: "respond_permission", sessionId, requestId, ...how };
    expect(await eve.refusal("claude_code_check", answer)).toMatchObject({ code: "PERMISSION_DENIED" });
  }
  const headers = { authorization: `Bearer ${users.tokens.eve}` };
  const path = `/requests/${sessionId}/${requestId ?? ""}`;
  expect((await http.fetch(path, post({ decision: "allow" }, headers))).status).toBe(403);
  const direct = await stream(eve, "claude_direct_query", { prompt, cwd, permissionMode: "acceptEdits" });
  expect(direct.data).toMatchObject({ status: "waiting_permission" });
  expect(fakeUser.seen).toEqual([]);
  expect(existsSync(file)).toBe(false);
  for (const id of [sessionId, direct.data["sessionId"]]) {
    await eve.call("claude_code_session", { action: "cancel", sessionId: id });
  }
  await expect.poll(() => audited(sessionId, "answered")).toMatchObject([{ decision: "deny", by: "cancel" }]);
  await eve.close();
});
