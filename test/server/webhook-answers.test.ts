import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import type { Connection } from "../kit/clients/connection.ts";
import { post, type HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import {
  LATE_RETRY,
  ofType,
  startReceiver,
  WITH_SECRET,
  type ReceiverServer,
} from "../kit/clients/webhook-receiver.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let receiver: ReceiverServer;
afterEach(async () => receiver.close());

interface NotifyingServer {
  readonly http: HttpServer;
  readonly client: Connection;
}

async function startNotifying(url: string, args: readonly string[], env = LATE_RETRY): Promise<NotifyingServer> {
  const http = await world.http({ args: ["--notify-url", url, ...args], env: { ...WITH_SECRET, ...env } });
  return { http, client: await http.connect() };
}

/** Turn in which Claude Code wants to write `file`. `begin` starts the turn. */
function writing(content = "made") {
  const cwd = world.folder();
  const file = join(cwd, "made.txt");
  const tools = [{ name: "Write", input: { file_path: file, content } }];
  const prompt = scriptTag([{ tools }, { text: "The turn is over." }]);
  return { file, begin: async (client: Connection) => client.call("claude_code", { prompt, cwd }) };
}

/** Decisions on requests with their approvers, from the log. */
async function answeredBy(client: Connection, sessionId: string): Promise<unknown[]> {
  const all = await client.call("claude_code_check", {
    action: "poll",
    sessionId,
    cursor: 1,
    waitMs: 0,
    responseMode: "delta_compact",
  });
  return all.events
    .filter(({ type }) => type === "permission_result")
    .map(({ data }) => [data["decision"] ?? data["behavior"], data["by"]]);
}

describe("requests whose approver is the webhook", () => {
  let audit: string;
  let port: number;
  let told: NotifyingServer;
  beforeAll(async () => {
    audit = join(world.folder(), "audit.jsonl");
    receiver = await startReceiver();
    port = Number(new URL(receiver.url).port);
    told = await startNotifying(receiver.url, ["--approvals", "webhook:400000,caller", "--audit-log", audit]);
    await receiver.close();
  });

  it("a request is answered by the receiver during the delivery, at the URL in its payload", async () => {
    let answered: Promise<{ status: number; body: unknown }> | undefined;
    let token = "";
    receiver = await startReceiver(({ payload, response }) => {
      if (payload.type !== "permission.asked") return void response.end();
      const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
      const sent = fetch(payload.answerUrl, { method: "POST", headers, body: JSON.stringify({ decision: "allow" }) });
      answered = sent.then(async (reply) => ({ status: reply.status, body: await reply.json() }));
      void answered.finally(() => response.end());
    }, port);
    const { http, client } = told;
    ({ token } = http);
    const { begin, file } = writing();
    const { sessionId } = await begin(client);
    const { payload } = await receiver.next(ofType("permission.asked"));
    expect(payload).toMatchObject({ request: { toolName: "Write", approver: "webhook" } });
    expect(payload.answerUrl).toBe(`${http.origin}/requests/${sessionId}/${payload.request?.requestId ?? ""}`);
    const { payload: last } = await receiver.next(ofType("turn.ended"));
    expect(last.turn).toMatchObject({ outcome: "done" });
    await expect(answered).resolves.toEqual({ status: 200, body: { ok: true, decision: "allow" } });
    expect(readFileSync(file, "utf8")).toBe("made");
    expect(await answeredBy(client, sessionId)).toEqual([["allow", "webhook"]]);
    const entries = readFileSync(audit, "utf8").trim().split("\n");
    expect(entries.map((line) => JSON.parse(line) as object)).toContainEqual(
      expect.objectContaining({
        principal: "local",
        action: "answer",
        sessionId,
        requestId: payload.request?.requestId,
        decision: "allow",
        outcome: "ok",
      }),
    );
  });

  it("a request goes to the next approver at once when the receiver cannot be reached", async () => {
    // Listens at another port, so that the webhook finds no receiver.
    receiver = await startReceiver();
    // With the webhook's own time limit, ten minutes, the test would not end.
    const { client } = told;
    const { begin, file } = writing();
    const { sessionId } = await begin(client);
    const { actions } = await client.news(sessionId);
    const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
    // Retries, because a caller may not allow a request while the webhook has the request.
    await expect
      .poll(async () => client.call("claude_code_check", { ...answer, waitMs: 0 }).then(() => "allowed", String))
      .toBe("allowed");
    await client.end(sessionId);
    expect(existsSync(file)).toBe(true);
    expect(await answeredBy(client, sessionId)).toEqual([["allow", "caller"]]);
  });

  it("a request is sent when it reaches the webhook, not before; with no approver after the webhook, it is denied", async () => {
    receiver = await startReceiver(({ response }) => void response.writeHead(500).end());
    const approvals = ["--approvals", "user:1000,webhook:3000"];
    const { http } = await startNotifying(receiver.url, approvals, constants({ notifyRetryMs: 50 }));
    const client = await http.connect("modern", undefined, () => ({ action: "cancel" }));
    const { begin, file } = writing();
    const { sessionId } = await begin(client);
    const first = await receiver.next();
    expect(first.payload).toMatchObject({
      type: "permission.asked",
      request: { approver: "webhook", toolName: "Write" },
    });
    const second = await receiver.next();
    expect(second.payload.id).toBe(first.payload.id);
    await client.end(sessionId);
    expect(existsSync(file)).toBe(false);
    expect(await answeredBy(client, sessionId)).toMatchObject([["deny", expect.any(String) as string]]);
  });
});

describe("POST /requests/{session}/{request}", () => {
  const users = namedUsers({
    ada: { scopes: ["read", "run", "approve"] },
    ben: { scopes: ["read", "run", "approve"] },
    eve: { scopes: ["read", "run"] },
  });
  let http: HttpServer;
  beforeAll(async () => {
    const url = "http://127.0.0.1:9/hook";
    // No receiver listens: the request stays with the webhook for as long as another attempt would be in time.
    const flags = ["--notify-url", url, "--approvals", "webhook:86400000,caller"];
    http = await world.http({ args: [...flags, ...users.args], env: { ...WITH_SECRET, ...LATE_RETRY } });
  });

  const as = (user: keyof typeof users.tokens) => ({ authorization: `Bearer ${users.tokens[user]}` });

  /** Opens a request in a session of `user`. Returns functions that answer and read the request. */
  async function asked(user: keyof typeof users.tokens, content?: string) {
    receiver = await startReceiver();
    const client = await http.connect("modern", users.tokens[user]);
    const { begin, file } = writing(content);
    const { sessionId } = await begin(client);
    const [action] = (await client.news(sessionId)).actions;
    const path = `/requests/${sessionId}/${action?.requestId ?? ""}`;
    const answer = async (body: unknown, headers: Record<string, string> = as(user)) => {
      const response = await http.fetch(path, post(body, headers));
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const look = async (headers: Record<string, string> = as(user)) => {
      const response = await http.fetch(path, { headers });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    return { answer, client, file, look, path, sessionId };
  }

  it("a request is answered once: a second answer and a look at the request name the first", async () => {
    const { answer, client, file, look, path, sessionId } = await asked("ada");
    const [, , , requestId] = path.split("/");
    expect(await look()).toMatchObject({
      status: 200,
      body: {
        sessionId,
        requestId,
        status: "open",
        type: "permission",
        toolName: "Write",
        approver: "webhook",
        input: { content: "made" },
      },
    });
    // The request was sent whole, so that `updatedInput` may change the input.
    const updatedInput = { file_path: file, content: "made otherwise" };
    expect(await answer({ decision: "allow", updatedInput })).toEqual({
      status: 200,
      body: { ok: true, decision: "allow" },
    });
    await client.end(sessionId);
    expect(readFileSync(file, "utf8")).toBe("made otherwise");
    const message = `Request ${requestId ?? ""} was already answered: allow, by webhook.`;
    const first = { decision: "allow", by: "webhook" };
    expect(await answer({ decision: "deny" })).toEqual({
      status: 409,
      body: { error: "already_answered", code: "PERMISSION_REQUEST_NOT_FOUND", message, ...first },
    });
    expect(await look()).toEqual({ status: 200, body: { sessionId, requestId, status: "answered", ...first } });
  });

  it("a denial with a message reaches Claude Code", async () => {
    const { answer, client, file, sessionId } = await asked("ada");
    expect(await answer({ decision: "deny", message: "Not on a Friday." })).toMatchObject({ status: 200 });
    await client.end(sessionId);
    expect(existsSync(file)).toBe(false);
    expect(world.transcript(sessionId).includes("Not on a Friday.")).toBe(true);
  });

  it("an answer can allow a request for the session", async () => {
    const { answer, client, file, sessionId } = await asked("ada");
    expect(await answer({ decision: "allow_for_session" })).toMatchObject({ status: 200 });
    await client.end(sessionId);
    expect(existsSync(file)).toBe(true);
  });

  it("only users who own the session and may approve are served, and no form of a browser", async () => {
    const { answer, client, look, path, sessionId } = await asked("ada");
    const allow = { decision: "allow" };
    expect(await answer(allow, { authorization: "Bearer ccm_nobodys-token-0123456789-0123456789" })).toMatchObject({
      status: 401,
    });
    expect(await answer(allow, { authorization: "" })).toMatchObject({ status: 401 });
    const unknown = { status: 404, body: { error: "not_found" } };
    expect(await answer(allow, as("ben"))).toMatchObject(unknown);
    expect(await look(as("ben"))).toMatchObject(unknown);
    expect(await answer(allow, as("eve"))).toMatchObject({ status: 403, body: { error: "insufficient_scope" } });
    expect(await look(as("eve"))).toMatchObject(unknown);
    const elsewhere = await http.fetch(`${path}x`, post(allow, as("ada")));
    expect(elsewhere.status).toBe(404);
    const form = { ...as("ada"), "content-type": "text/plain" };
    expect(await answer(allow, form)).toMatchObject({ status: 415 });
    expect(await answer(allow, { ...as("ada"), origin: "https://evil.example" })).toMatchObject({ status: 403 });
    expect((await client.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 })).actions).toHaveLength(1);
    await client.call("claude_code_session", { action: "cancel", sessionId });
    // The end of the session has answered the request.
    expect(await answer(allow)).toMatchObject({ status: 409, body: { error: "already_answered", by: "cancel" } });
  });

  it("an answer needs the scope approve even in a session of the caller's own", async () => {
    const { answer, client, look, sessionId } = await asked("eve");
    expect(await answer({ decision: "allow" })).toMatchObject({ status: 403, body: { error: "insufficient_scope" } });
    expect(await answer({ decision: "deny" })).toMatchObject({ status: 403 });
    expect(await look()).toMatchObject({ status: 200, body: { status: "open" } });
    await client.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("an invalid answer is refused with the reason, and does nothing", async () => {
    const { answer, client, sessionId } = await asked("ada");
    const wrong: [unknown, string][] = [
      ["{", "The body is not JSON."],
      [[], "The body must be a JSON object."],
      [{}, "decision: "],
      [{ decision: "maybe" }, "decision: "],
      [{ decision: "allow", force: true }, 'Unknown field "force"'],
      [{ decision: "allow", message: "why" }, "message: is only allowed with decision deny."],
      [{ decision: "deny", message: "" }, "message: "],
      [{ decision: "deny", updatedInput: {} }, "updatedInput: is only allowed with decision allow."],
      [{ decision: "allow_for_session", updatedInput: {} }, "updatedInput: is only allowed with decision allow."],
      [{ decision: "allow", answers: { "Which?": "A" } }, "answers: is only for questions"],
      [{ decision: "allow", updatedInput: "rm" }, "updatedInput: "],
    ];
    for (const [body, message] of wrong) {
      const { body: told, status } = await answer(body);
      expect([status, told["error"]]).toEqual([400, "invalid_request"]);
      expect(told["message"]).toContain(message);
    }
    expect((await client.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 })).actions).toHaveLength(1);
    await client.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a question is answered by its text", async () => {
    receiver = await startReceiver();
    const client = await http.connect("modern", users.tokens.ada);
    const options = ["A", "B"].map((label) => ({ label, description: `to take ${label}` }));
    const questions = [{ question: "Which?", header: "Which", options, multiSelect: false }];
    const script = scriptTag([{ tools: [{ name: "AskUserQuestion", input: { questions } }] }, { text: "Understood." }]);
    const { sessionId } = await client.call("claude_code", { prompt: script, cwd: world.folder() });
    const [action] = (await client.news(sessionId)).actions;
    const send = async (body: unknown) =>
      http.fetch(`/requests/${sessionId}/${action?.requestId ?? ""}`, post(body, as("ada")));
    const without = await send({ decision: "allow" });
    expect([without.status, await without.text()]).toEqual([400, expect.stringContaining("answers: is required")]);
    expect((await send({ decision: "allow", answers: { "Which?": "B" } })).status).toBe(200);
    expect((await client.end(sessionId)).result).toMatchObject({ result: "Understood." });
    expect(world.transcript(sessionId).includes(String.raw`\"Which?\"=\"B\"`)).toBe(true);
  });
});
