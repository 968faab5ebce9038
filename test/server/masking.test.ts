import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, describe, expect, it } from "vitest";

import type { Script } from "../../src/demo/model/script.ts";
import { startScriptedModel, type ScriptedModel } from "../../src/demo/model/server.ts";
import type { SessionEvent } from "../../src/domain/event.ts";
import { createMasker } from "../../src/log/mask.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { processorMs } from "../kit/runner/processor-time.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { runSessions } from "../kit/clients/sessions-command.ts";
import { useWorld } from "../kit/world.ts";

const TOKEN = "tok-12345-very-secret";
const API_KEY = "sk-ant-api03-AbC_d-9xYz";
const KEY_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
const PEM = `-----BEGIN PRIVATE KEY-----\n${KEY_BODY}\n${KEY_BODY.toLowerCase()}\n-----END PRIVATE KEY-----`;
const SECRETS = [TOKEN, API_KEY, KEY_BODY, KEY_BODY.toLowerCase()];
const ALL = `token ${TOKEN}, key ${API_KEY}, and\n${PEM}\nthat is all`;

const findSecrets = (text: string): string[] => SECRETS.filter((secret) => text.includes(secret));

const world = useWorld();
const models: ScriptedModel[] = [];
afterAll(async () => {
  await Promise.all(models.map(async (model) => model.close()));
});

/** Starts a server whose model plays `script` for every prompt, because a script in the prompt would be logged. */
async function startScripted(script: (cwd: string) => Script) {
  const cwd = world.folder();
  const model = await startScriptedModel({ script: script(cwd) });
  models.push(model);
  const file = join(cwd, "sessions.db");
  const env = { ...model.environment(world.configFolder), MY_API_TOKEN: TOKEN };
  const server = await world.server({ args: ["--store", file], env });
  const stored = () =>
    [file, `${file}-wal`].map((path) => (existsSync(path) ? readFileSync(path, "latin1") : "")).join("\n");
  return { model, server, cwd, stored };
}

async function pollAll(server: Server, sessionId: string): Promise<Answer> {
  const args = { action: "poll", sessionId, cursor: 1, waitMs: 0, maxBytes: 1_048_576, responseMode: "delta_compact" };
  return server.call("claude_code_check", args);
}

describe("secrets", () => {
  it("secrets that Claude and its tools print are in no answer, on no line of stderr and nowhere in the store", async () => {
    const command = 'printenv MY_API_TOKEN; cat keys.txt; echo "to stderr: $MY_API_TOKEN" >&2';
    const { cwd, server, stored } = await startScripted((folder) => {
      const note = join(folder, "note.txt");
      return [
        { thinking: `I think of ${ALL}`, text: `I look: ${ALL}`, tools: [{ name: "Bash", input: { command } }] },
        { tools: [{ name: "Write", input: { file_path: note, content: "a\nx\nb\n" } }] },
        { tools: [{ name: "Edit", input: { file_path: note, old_string: "x", new_string: ALL } }] },
        { text: `I have found ${ALL}` },
      ];
    });
    writeFileSync(join(cwd, "keys.txt"), ALL);
    // The output of a hook is cut at 4,000 characters, inside the token.
    const hook = {
      type: "command",
      command: `printf "%03992d" 0; printenv MY_API_TOKEN; cat ${join(cwd, "keys.txt")}`,
    };
    const settings = { hooks: { PreToolUse: [{ matcher: "Bash", hooks: [hook] }] } };
    writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify(settings));
    const allowedTools = ["Bash", "Write", "Edit"];
    const start = { prompt: "Look around.", cwd, allowedTools, advanced: { includeHookEvents: true } };
    const { sessionId } = await server.call("claude_code", start);
    const done = await server.end(sessionId);
    expect(done).toMatchObject({ status: "idle", result: { isError: false } });
    expect(done.result?.result).toBe("I have found token [masked], key [masked], and\n[masked]\nthat is all");

    writeFileSync(join(world.configFolder, "settings.json"), "{}");

    const { events } = await pollAll(server, sessionId);
    const outputs = events.map(({ data }) => data["output"]);
    expect(outputs).toContainEqual(expect.stringMatching(/^\[masked\]\ntoken \[masked\], key \[masked\], and\n/));
    expect(readFileSync(join(cwd, "note.txt"), "utf8")).toBe(`a\n${ALL}\nb\n`);
    expect(findSecrets(world.transcript(sessionId))).toEqual(SECRETS);

    const store = ["--store", join(cwd, "sessions.db")];
    const printed = await Promise.all([
      runSessions(["show", sessionId, "--json", ...store]),
      runSessions(["export", sessionId, ...store]),
    ]);
    expect(printed.map(({ status }) => status)).toEqual([0, 0]);
    expect(printed.map(({ stdout }) => findSecrets(stdout))).toEqual([[], []]);
    // The part of the token before the cut is masked too.
    expect(printed[1].stdout).toMatch(/0{3992}\[masked\]?"/);

    expect(stored()).toContain("I have found token [masked]");
    expect(stored()).toMatch(/"structuredPatch".*"\+\[masked\]"/);
    expect([JSON.stringify([done, events]), stored(), server.stderr()].map(findSecrets)).toEqual([[], [], []]);
    await server.close();
    await server.gone;
    expect(findSecrets(stored())).toEqual([]);
  });

  it("secrets stay unmasked in prompts, inputs and denials that go back to Claude Code", async () => {
    const { cwd, model, server } = await startScripted((folder) => [
      { tools: [{ name: "Write", input: { file_path: join(folder, "a.txt"), content: ALL } }] },
      { tools: [{ name: "Write", input: { file_path: join(folder, "b.txt"), content: ALL } }] },
      { text: "Done." },
    ]);
    const { sessionId } = await server.call("claude_code", { prompt: `Use ${ALL}`, cwd });
    const first = await server.news(sessionId);
    const { input = {}, requestId } = first.actions[0] ?? {};
    expect(input["content"]).toBe(ALL);
    const prompted = await model.waitForRequest((request) => request.sessionId === sessionId);
    expect(findSecrets(prompted.lastUserText)).toEqual(SECRETS);

    const answer = { action: "respond_permission", sessionId, cursor: first.nextCursor };
    const updatedInput = { ...input, content: `${String(input["content"])}, and more` };
    await server.call("claude_code_check", {
      ...answer,
      requestId,
      decision: "allow",
      permissionOptions: { updatedInput },
      waitMs: 0,
    });
    const second = await server.news(sessionId, first.nextCursor);
    expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe(`${ALL}, and more`);

    const why = `Not ${TOKEN}`;
    const { requestId: other } = second.actions[0] ?? {};
    const denial = { ...answer, requestId: other, decision: "deny", denyMessage: why };
    await server.call("claude_code_check", { ...denial, cursor: second.nextCursor });
    expect(await server.end(sessionId)).toMatchObject({ status: "idle" });
    expect(world.transcript(sessionId)).toContain(why);

    const { events } = await pollAll(server, sessionId);
    const calls = events.filter(({ data }) => data["tool"] === "Write");
    expect(calls).toHaveLength(2);
    expect(findSecrets(JSON.stringify(calls))).toEqual([]);
    expect(events.find(({ data }) => data["decision"] === "deny")?.data["message"]).toBe(why);
  });
});

describe("masking of stored events", () => {
  const masker = createMasker({ MY_API_TOKEN: TOKEN });
  const masked = (event: SessionEvent): unknown => masker.event(event).data;
  const ask = { requestId: "r", kind: "permission", toolName: "Bash", input: { a: TOKEN }, toolUseId: "t" } as const;
  const numbers = { durationMs: 1, durationApiMs: 1, numTurns: 1, costUsd: 1, sessionTurns: 1, sessionCostUsd: 1 };

  it.each<[SessionEvent, unknown]>([
    [
      { type: "message", data: { message: { a: [{ b: TOKEN }], [TOKEN]: 1 } } },
      { message: { a: [{ b: "[masked]" }] } },
    ],
    [
      { type: "notice", data: { kind: "retry", message: `a ${TOKEN}`, details: { error: TOKEN } } },
      { kind: "retry", message: "a [masked]", details: { error: "[masked]" } },
    ],
    [
      { type: "notice", data: { kind: "retry", message: TOKEN } },
      { kind: "retry", message: "[masked]" },
    ],
    [
      { type: "turn.ended", data: { turnId: "t", outcome: "failed", isError: true, message: TOKEN, ...numbers } },
      { turnId: "t", message: "[masked]", ...numbers },
    ],
    [
      { type: "process.exited", data: { processId: "1", code: 1, signal: null, expected: false, error: TOKEN } },
      { code: 1, error: "[masked]" },
    ],
    [
      { type: "background.changed", data: { tasks: [{ id: "b", type: "local_bash", description: TOKEN }] } },
      { tasks: [{ id: "b", type: "local_bash", description: "[masked]" }] },
    ],
  ])("an event is stored masked: %j", (event, expected) => {
    const before = structuredClone(event);
    expect(masker.event(event).type).toBe(event.type);
    expect(masked(event)).toMatchObject(Object(expected));
    expect(event).toEqual(before);
  });

  it.each<SessionEvent>([
    { type: "prompt.queued", data: { promptId: "p", text: ALL } },
    { type: "permission.asked", data: ask },
    { type: "question.asked", data: { ...ask, kind: "question" } },
    {
      type: "permission.answered",
      data: { requestId: "r", toolName: "Bash", behavior: "deny", by: "caller", message: ALL },
    },
    { type: "turn.ended", data: { turnId: "t", outcome: "done", isError: false, ...numbers } },
    { type: "process.exited", data: { processId: "1", code: 0, signal: null, expected: true } },
  ])("an event is stored as it is: $type", (event) => {
    expect(masker.event(event)).toEqual(event);
  });

  it("a private key is masked if each of its lines is a separate text", () => {
    const lines = [" a", ...PEM.split("\n").map((line) => `+${line}`), "+b", "-----BEGIN RSA PRIVATE KEY-----", "cut"];
    const event = { type: "message", data: { message: { lines: [...lines, { other: TOKEN }] } } } as const;
    const [before, ...rest] = [" a", "+[masked]", "[masked]", "[masked]", "[masked]", "+b", "[masked]", "[masked]"];
    expect(masked(event)).toEqual({ message: { lines: [before, ...rest, { other: "[masked]" }] } });
  });

  it("an event nested 20,000 deep is stored cut", () => {
    let message: Record<string, unknown> = { a: TOKEN };
    for (let depth = 0; depth < 20_000; depth += 1) message = { a: message };
    expect(JSON.stringify(masked({ type: "message", data: { message } }))).toContain("[nested too deeply]");
  });

  it.each([
    ["text", "The quick brown fox jumps over the lazy dog.\n"],
    ["secrets", `say ${TOKEN} again\n`],
    ["white space", " "],
    ["the beginnings of tokens", "Bearer "],
    ["the beginnings of keys", "-----BEGIN PRIVATE KEY-----"],
    ["URLs", "https://a:b"],
  ])("masking takes time that grows with the length of an event: 1 MB of %s", async (_, piece) => {
    const message = { text: piece.repeat(Math.ceil(1_000_000 / piece.length)) };
    // Takes some 10 ms; a pattern of quadratic time would take hours.
    expect(await processorMs(() => masked({ type: "message", data: { message } }))).toBeLessThan(2000);
  });
});
