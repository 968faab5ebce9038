import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

/** Makes every example call of docs/toolsets.md in the order of the page, and compares the answers. */

const EXAMPLE = /<!-- example: (\w+) -->\n\n```json\n([^`]+)```\n\n```json\n([^`]+)```/g;
const FOLDER = "/home/me/project";
const SESSION = "4b07c6a2-0a4c-4a7e-9d3f-2f6f7a1f8a11";
/** Fields whose texts differ between runs or releases. */
const LOOSE = new Set(["toolUseId", "lastToolUseId", "output", "model", "resolvedModel", "timestamp"]);

const page = readFileSync("docs/toolsets.md", "utf8");
const examples = [...page.matchAll(EXAMPLE)].map(([, tool = "", call = "", answer = ""]) => ({ tool, call, answer }));

const world = useWorld();
let server: Server;
let cwd: string;
let sessionId = SESSION;
beforeAll(async () => {
  server = await world.server({ args: ["--toolsets", "all", "--allow-rules", "Bash(touch a.txt)"] });
  cwd = world.folder();
  writeFileSync(join(cwd, "note.txt"), "The tide is low.\n");
});

/** Reduces `value` to the part that must be equal: without measures, ids, and the details of Claude Code's usage. */
function comparablePart(value: unknown, key = ""): unknown {
  if (typeof value === "number") return "a number";
  if (typeof value === "string") return LOOSE.has(key) ? "a text" : value;
  if (Array.isArray(value)) return value.map((each) => comparablePart(each));
  if (typeof value !== "object" || value === null) return value;
  if (key === "usage" || key === "modelUsage") return "counts";
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, comparablePart(each, name)]));
}

it.each(examples)("$tool answers as its example says", async ({ answer, call, tool }) => {
  const args = JSON.parse(call.replaceAll(FOLDER, cwd).replaceAll(SESSION, sessionId)) as Record<string, unknown>;
  const read = { name: "Read", input: { file_path: join(cwd, "note.txt") } };
  const script = [{ thinking: "I have to read it.", tools: [read] }, { text: "A note on the tide." }];
  const { prompt } = args;
  const whole = { ...args, ...(typeof prompt === "string" && { prompt: `${prompt} ${scriptTag(script)}` }) };
  const { data, isError } = await stream(server, tool, whole);
  expect(isError).toBe(false);
  if (tool === "claude_code" || tool === "claude_session_create") sessionId = String(data["sessionId"]);
  const told = JSON.stringify(data)
    .replaceAll(typeof data["sessionId"] === "string" ? data["sessionId"] : sessionId, SESSION)
    .replaceAll(cwd, FOLDER);
  expect(comparablePart(JSON.parse(told))).toMatchObject(comparablePart(JSON.parse(answer)) as object);
  const keys = Object.keys(JSON.parse(answer) as object);
  expect(Object.keys(data).toSorted()).toEqual(keys.toSorted());
});

/** True if `found` has every field of `example`, with values of equal kinds. */
function isLike(example: unknown, found: unknown): boolean {
  if (Array.isArray(example))
    return Array.isArray(found) && example.every((each) => found.some((one) => isLike(each, one)));
  if (typeof example !== "object" || example === null) return typeof example === typeof found;
  if (typeof found !== "object" || found === null) return false;
  const isSame = (name: string) =>
    !["type", "subtype", "decision", "by"].includes(name) || Reflect.get(example, name) === Reflect.get(found, name);
  return Object.entries(example).every(([name, value]) => isSame(name) && isLike(value, Reflect.get(found, name)));
}

function shapesOf(text: string, name: string): { type: string; data?: unknown }[] {
  const shapes = new RegExp(`<!-- shapes: ${name} -->\n\n\`\`\`json\n([^]+?)\n\`\`\``).exec(text)?.[1];
  return JSON.parse(shapes ?? "") as { type: string; data?: unknown }[];
}

describe("examples of docs/toolsets.md", () => {
  const shapes = (name: string) => shapesOf(page, name);
  const script = [
    { tools: [{ name: "Bash", input: { command: "exit 3" } }] },
    { tools: [{ name: "Write", input: { file_path: "out.txt", content: "x" } }] },
    { text: "A note on the tide." },
  ];

  it("the example events match real events", async () => {
    const start = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"], waitMs: 40_000 };
    const { sessionId: id } = await server.call("claude_code", start);
    const asked = await server.news(id);
    const [{ requestId } = { requestId: "" }] = asked.actions;
    const answer = { action: "respond_permission", decision: "allow", sessionId: id, requestId, until: "end" };
    const done = await server.call("claude_code_check", { ...answer, cursor: 1 });
    const whole = await server.end(id);
    const refused = { sessionId: id, prompt: scriptTag([{ error: { status: 401, times: 9 } }]), waitMs: 40_000 };
    await server.call("claude_code_reply", refused);
    const ended = await server.end(id);
    expect(isLike(shapesOf(page, "failure"), [ended.result])).toBe(true);
    const events = [asked, done, whole, ended].flatMap((each) => each.events);
    expect(shapes("events").filter((shape) => !events.some((each) => isLike(shape, each)))).toEqual([]);
  });

  it("the example messages match real messages", async () => {
    const args = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"], permissionMode: "dontAsk" };
    const { data } = await stream(server, "claude_code_query", args);
    const messages = data["messages"] as object[];
    expect(shapes("messages").filter((shape) => !messages.some((each) => isLike(shape, each)))).toEqual([]);
  });
});

describe("the examples of other pages", () => {
  const textOf = (file: string) => readFileSync(file, "utf8");
  const running = (commands: string[], text: string) =>
    scriptTag([...commands.map((command) => ({ tools: [{ name: "Bash", input: { command } }] })), { text }]);
  /** Session of README's run; the next test continues it. */
  let id: string;

  it("README's run matches a real run, call by call", async () => {
    const lines = [...textOf("README.md").matchAll(/^(claude_code\w*) +(\{.*\})\n +\/\/ (\{.*\})$/gm)];
    const [first, poll, answer] = lines.map(([, tool = "", call = "", said = ""]) => ({ tool, call, said }));
    expect(lines.map(([, tool]) => tool)).toEqual(["claude_code", "claude_code_check", "claude_code_check"]);
    const prompt = `Fix the failing test ${running(["npm test"], "Fixed: it passes.")}`;
    const args = JSON.parse(first?.call ?? "") as Record<string, unknown>;
    const begun = await server.call(first?.tool ?? "", { ...args, prompt, cwd });
    id = begun.sessionId;
    const ids = (call = "", requestId = "") =>
      JSON.parse(call.replace("4b07…", begun.sessionId).replace("8c25…", requestId)) as Record<string, unknown>;
    const asked = await server.call(poll?.tool ?? "", ids(poll?.call));
    expect(asked).toMatchObject({ status: "waiting_permission", actions: [{ input: { command: "npm test" } }] });
    const done = await server.call(answer?.tool ?? "", ids(answer?.call, asked.actions[0]?.requestId));
    expect(done).toMatchObject({ status: "idle", result: { result: "Fixed: it passes." } });
    const shown = [begun, asked, done].map((each) => JSON.stringify(each));
    for (const [at, { said } = { said: "" }] of [first, poll, answer].entries()) {
      const names = [...said.matchAll(/"(\w+)":/g)].map(([name]) => name);
      expect(names.filter((name) => shown[at]?.includes(name) !== true)).toEqual([]);
    }
  });

  it("the examples of ended requests, a busy session and revoked rules match real answers", async () => {
    const prompt = running(["touch a.txt", "npm test", "npm run lint"], "Fixed.");
    await server.call("claude_code_reply", { sessionId: id, prompt, waitMs: 40_000 });
    const [{ requestId } = { requestId: "" }] = (await server.news(id)).actions;
    const tools = textOf("docs/tools.md");
    const [, example = ""] = /"error": "(Error \[SESSION_BUSY\][^"]*)"/.exec(tools) ?? [];
    expect(await server.refusal("claude_code_reply", { sessionId: id, prompt: "x" })).toMatchObject({ text: example });
    const answer = { action: "respond_permission", decision: "allow_for_session", sessionId: id, requestId };
    const next = await server.call("claude_code_check", { ...answer, waitMs: 20_000 });
    expect(next.actions).toMatchObject([{ input: { command: "npm run lint" } }]);
    const revoke = /\{ "action": "revoke".*\}/.exec(textOf("docs/approvals.md"))?.[0] ?? "";
    const taken = { ...(JSON.parse(revoke) as object), sessionId: id };
    const { message } = (await stream(server, "claude_code_session", taken)).data;
    expect(message).toContain("Asked again from now on: Bash(npm test)");
    await server.call("claude_code_session", { action: "interrupt", sessionId: id });
    const { events } = await server.call("claude_code_check", {
      action: "poll",
      sessionId: id,
      until: "end",
      cursor: 1,
      responseMode: "delta_compact",
    });
    const decisions = shapesOf(tools, "decisions");
    const real = events.filter(({ type }) => type === "permission_result");
    expect(decisions.filter((shape) => !real.some((each) => isLike(shape, each)))).toEqual([]);
    // Only events of mode `full` can be read by id: 1 is the prompt, 2 the start of the turn.
    const whole = { action: "poll", sessionId: id, cursor: 1, waitMs: 0, responseMode: "full", maxBytes: 200_000 };
    const { events: all } = await server.call("claude_code_check", whole);
    const told = new Set(all.map((event) => event.id));
    const last = Math.max(...told);
    for (let eventId = 1; eventId <= last; eventId += 1) {
      const read = server.client.callTool({
        name: "claude_code_check",
        arguments: { action: "poll", sessionId: id, eventId },
      });
      expect([eventId, (await read).isError !== true]).toEqual([eventId, told.has(eventId)]);
    }
  });
});

it("every tool has an example", async () => {
  const { tools } = await server.client.listTools();
  expect(examples.map(({ tool }) => tool).toSorted()).toEqual(tools.map(({ name }) => name).toSorted());
});
