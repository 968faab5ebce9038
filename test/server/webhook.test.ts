import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { ofType, SECRET, startReceiver, WITH_SECRET, type ReceiverServer } from "../kit/clients/webhook-receiver.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });

let receiver: ReceiverServer;
afterEach(async () => receiver.close());

const SOON = constants({ notifyRetryMs: 50 });

/** Starts a server over HTTP that notifies `url`, and a client. */
async function startNotifying(url: string, ...args: string[]) {
  const http = await world.http({ args: ["--notify-url", url, ...args], env: { ...WITH_SECRET, ...SOON } });
  return { http, client: await http.connect() };
}

/** Turn that asks to write `file` and then ends. */
function writing(): { script: string; file: string; cwd: string } {
  const cwd = world.folder();
  const file = join(cwd, "made.txt");
  const tools = [{ name: "Write", input: { file_path: file, content: "made" } }];
  return { cwd, file, script: scriptTag([{ tools }, { text: "Written." }]) };
}

const hasEnded = (http: HttpServer, outcome: string) => http.logged(`"outcome":"${outcome}"`);

describe("messages that the webhook receives", () => {
  it("the webhook receives each request and the turn's end, on stdio too, without secrets of the environment", async () => {
    receiver = await startReceiver();
    const secret = "planted-secret-0123456789";
    const audit = join(world.folder(), "audit.jsonl");
    const secretFile = join(world.folder(), "secret");
    writeFileSync(secretFile, `${SECRET}\n`, { mode: 0o600 });
    const args = ["--notify-url", receiver.url, "--notify-secret-file", secretFile, "--audit-log", audit];
    const server = await world.server({ args, env: { SOME_API_KEY: secret } });
    const cwd = world.folder();
    const command = `printf %s ${secret} > made.txt && echo ${SECRET}`;
    const script = scriptTag([{ tools: [{ name: "Bash", input: { command } }] }, { text: "Done." }]);
    const { sessionId } = await server.call("claude_code", { prompt: script, cwd, advanced: { title: "My title" } });

    const asked = await receiver.next(ofType("permission.asked"));
    const [action] = (await server.news(sessionId)).actions;
    const masked = command.replace(secret, "[masked]").replace(SECRET.slice("whsec_".length), "[masked]");
    expect(asked.payload).toMatchObject({
      id: asked.headers["webhook-id"],
      server: { version: expect.stringMatching(/^\d+\./) as string },
      session: { id: sessionId, principal: "local", title: "My title", cwd },
      request: {
        requestId: action?.requestId,
        toolName: "Bash",
        summary: `Bash: ${masked}`,
        input: { command: masked },
      },
    });
    // A server on stdio has no URL to answer at.
    expect(asked.payload.answerUrl).toBe("");
    await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      requestId: action?.requestId,
      decision: "allow",
      waitMs: 40_000,
    });
    // Masks the payload, not the command that runs.
    expect(readFileSync(join(cwd, "made.txt"), "utf8")).toBe(secret);

    const ended = await receiver.next(ofType("turn.ended"));
    expect(ended.payload).toMatchObject({
      session: { id: sessionId },
      turn: { outcome: "done", costUsd: expect.any(Number) as number, durationMs: expect.any(Number) as number },
    });
    expect(receiver.got.map(({ text }) => text).join("")).not.toContain(secret);
    expect(server.stderr()).not.toContain(SECRET.slice("whsec_".length));
    await server.close();
    const entries = readFileSync(audit, "utf8").trim().split("\n");
    const ofWebhook = entries
      .map((line) => JSON.parse(line) as object)
      .filter((entry) => "tool" in entry && entry.tool === "webhook");
    expect(ofWebhook).toMatchObject([
      { principal: "local", action: "permission.asked", sessionId, requestId: action?.requestId, outcome: "delivered" },
      { principal: "local", action: "turn.ended", sessionId, outcome: "delivered" },
    ]);
  });

  it("the webhook receives a question, and a turn that has spent its budget", async () => {
    receiver = await startReceiver();
    const { client } = await startNotifying(receiver.url);
    const dear = { usage: { input_tokens: 400_000 } };
    const options = ["A", "B"].map((label) => ({ label, description: `to take ${label}` }));
    const questions = [{ question: "Which?", header: "Which", options, multiSelect: false }];
    const script = scriptTag([
      { tools: [{ name: "AskUserQuestion", input: { questions } }] },
      { ...dear, tools: [{ name: "Bash", input: { command: "ls" } }] },
      { ...dear, tools: [{ name: "Bash", input: { command: "ls" } }] },
      { text: "never reached" },
    ]);
    const terms = { advanced: { maxBudgetUsd: 1 }, allowedTools: ["Bash"], cwd: world.folder() };
    const { sessionId } = await client.call("claude_code", { prompt: script, ...terms });
    const asked = await receiver.next();
    expect(asked.payload).toMatchObject({
      type: "question.asked",
      request: { toolName: "AskUserQuestion", summary: "AskUserQuestion: Which?", input: { questions } },
    });
    await client.news(sessionId);
    await client.call("claude_code_check", {
      action: "answer_question",
      sessionId,
      requestId: asked.payload.request?.requestId,
      answers: { "Which?": "A" },
      waitMs: 40_000,
    });
    const ends = [await receiver.next(), await receiver.next()].map(({ payload }) => payload);
    const turn = { outcome: "failed", errorSubtype: "error_max_budget_usd" };
    const expected = [
      { type: "budget.reached", turn },
      { type: "turn.ended", turn },
    ];
    expect(ends.toSorted((one, other) => one.type.localeCompare(other.type))).toMatchObject(expected);
    expect(receiver.got).toHaveLength(3);
  });

  it("the webhook receives a message again under the same id after an error, unless it was answered meanwhile", async () => {
    receiver = await startReceiver();
    const { url } = receiver;
    const port = Number(new URL(url).port);
    await receiver.close();
    const { http, client } = await startNotifying(url);
    const { cwd, script } = writing();
    const { sessionId } = await client.call("claude_code", { prompt: script, cwd });
    await http.logged("ECONNREFUSED");
    receiver = await startReceiver(({ response }) => void response.writeHead(500).end(), port);
    const [first, second] = [await receiver.next(), await receiver.next()];
    expect(first.payload.type).toBe("permission.asked");
    expect(second.payload).toMatchObject({ id: first.payload.id, createdAt: first.payload["createdAt"] });
    expect(second.headers["webhook-id"]).toBe(first.headers["webhook-id"]);
    const { payload } = first;
    await client.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      requestId: payload.request?.requestId,
      decision: "deny",
    });
    await hasEnded(http, "obsolete");
    const attempts = receiver.got.filter(ofType("permission.asked")).length;
    const metrics = await (await http.fetch("/metrics")).text();
    expect(metrics).toContain('claude_code_mcp_webhook_deliveries_total{outcome="obsolete"} 1');
    await http.close();
    expect(receiver.got.filter(ofType("permission.asked"))).toHaveLength(attempts);
  });

  it("a receiver that never answers delays neither a turn nor the end of the server", async () => {
    receiver = await startReceiver(() => undefined);
    const { http, client } = await startNotifying(receiver.url);
    const { cwd, file, script } = writing();
    const { sessionId } = await client.call("claude_code", { prompt: script, cwd, allowedTools: ["Write"] });
    expect((await client.end(sessionId)).result).toMatchObject({ result: "Written." });
    expect(existsSync(file)).toBe(true);
    const { headers } = await receiver.next(ofType("turn.ended"));
    await client.close();
    http.signal("SIGTERM");
    await expect(http.exited).resolves.toBe(0);
    const { url } = receiver;
    await receiver.close();
    receiver = await startReceiver(undefined, Number(new URL(url).port));
    // The server has given up the attempt, so the next server makes another at once.
    await startNotifying(url);
    expect((await receiver.next(ofType("turn.ended"))).headers["webhook-id"]).toBe(headers["webhook-id"]);
  });
});

describe("a webhook that cannot be used", () => {
  const secret = "CLAUDE_CODE_MCP_NOTIFY_SECRET";
  const URL_OF = "https://example.com/hook";

  it.each([
    [["--notify-url", "http://example.com/hook"], {}, "--notify-url must be an https URL (http only on loopback)."],
    [["--notify-url", URL_OF], {}, "--notify-url requires a signing secret"],
    [
      ["--notify-url", URL_OF],
      { [secret]: "whsec_c2hvcnQ=" },
      `The secret of the webhook in ${secret} must be whsec_ and 24 to 64`,
    ],
    [
      ["--notify-url", URL_OF],
      { [secret]: "not base64: at all, no, no, no, no" },
      `The secret of the webhook in ${secret} must be`,
    ],
    [
      ["--notify-url", URL_OF, "--notify-secret-file", "/nowhere/secret"],
      {},
      "The secret file /nowhere/secret cannot be read",
    ],
  ])("a server refuses to start with the webhook of %j", async (args, env: Record<string, string>, message) => {
    receiver = await startReceiver();
    const own = ["dist/cli/main.js", "serve", "--daemon", "off"];
    const { status, stderr } = spawnSync(process.execPath, [...own, ...args], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", ...env },
    });
    expect(stderr).toContain(`claude-agents-mcp: ${message}`);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(status).toBe(2);
  });
});
