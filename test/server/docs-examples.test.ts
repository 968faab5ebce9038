import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "./server.ts";
import { stream } from "./streaming.ts";
import { createWorld, type World } from "./world.ts";

/** Every worked call in docs/toolsets.md is made, in the order of the page, and compared with the answer there. */

const EXAMPLE = /<!-- example: (\w+) -->\n\n```json\n([^`]+)```\n\n```json\n([^`]+)```/g;
const FOLDER = "/home/me/project";
const SESSION = "4b07c6a2-0a4c-4a7e-9d3f-2f6f7a1f8a11";
/** Different each time, or of another release. */
const LOOSE = new Set(["toolUseId", "lastToolUseId", "output", "model", "resolvedModel", "timestamp"]);

const page = readFileSync("docs/toolsets.md", "utf8");
const examples = [...page.matchAll(EXAMPLE)].map(([, tool = "", call = "", answer = ""]) => ({ tool, call, answer }));

let world: World;
let server: Server;
let cwd: string;
let sessionId = SESSION;
beforeAll(async () => {
  world = await createWorld();
  server = await world.server({ args: ["--toolsets", "all"] });
  cwd = world.folder();
  writeFileSync(join(cwd, "note.txt"), "The tide is low.\n");
});
afterAll(async () => world.close());

/** What must be the same: everything but measures, ids, and the insides of what Claude Code counts. */
function fixed(value: unknown, key = ""): unknown {
  if (typeof value === "number") return "a number";
  if (typeof value === "string") return LOOSE.has(key) ? "a text" : value;
  if (Array.isArray(value)) return value.map((each) => fixed(each));
  if (typeof value !== "object" || value === null) return value;
  if (key === "usage" || key === "modelUsage") return "counts";
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fixed(each, name)]));
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
  expect(fixed(JSON.parse(told))).toMatchObject(fixed(JSON.parse(answer)) as object);
  const keys = Object.keys(JSON.parse(answer) as object);
  expect(Object.keys(data).toSorted()).toEqual(keys.toSorted());
});

/** What stands in `example` stands in one of `found`, with values of the same kind. */
function isLike(example: unknown, found: unknown): boolean {
  if (Array.isArray(example))
    return Array.isArray(found) && example.every((each) => found.some((one) => isLike(each, one)));
  if (typeof example !== "object" || example === null) return typeof example === typeof found;
  if (typeof found !== "object" || found === null) return false;
  const isSame = (name: string) =>
    !["type", "subtype"].includes(name) || Reflect.get(example, name) === Reflect.get(found, name);
  return Object.entries(example).every(([name, value]) => isSame(name) && isLike(value, Reflect.get(found, name)));
}

describe("the events and messages of the page are like real ones", () => {
  const shapes = (name: string) => {
    const text = new RegExp(`<!-- shapes: ${name} -->\n\n\`\`\`json\n([^\`]+)\`\`\``).exec(page)?.[1];
    return JSON.parse(text ?? "") as { type: string; data?: unknown }[];
  };
  const script = [
    { tools: [{ name: "Bash", input: { command: "exit 3" } }] },
    { tools: [{ name: "Write", input: { file_path: "out.txt", content: "x" } }] },
    { text: "A note on the tide." },
  ];

  it("events", async () => {
    const start = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"], waitMs: 40_000 };
    const { sessionId: id } = await server.call("claude_code", start);
    const asked = await server.news(id);
    const [{ requestId } = { requestId: "" }] = asked.actions;
    const answer = { action: "respond_permission", decision: "allow", sessionId: id, requestId, until: "end" };
    const done = await server.call("claude_code_check", { ...answer, cursor: 1 });
    const refused = { prompt: scriptTag([{ error: { status: 401, times: 9 } }]), cwd, waitMs: 40_000 };
    const { sessionId: failed } = await server.call("claude_code", refused);
    const whole = [await server.end(id), await server.end(failed)];
    const events = [asked, done, ...whole].flatMap((each) => each.events);
    expect(shapes("events").filter((shape) => !events.some((each) => isLike(shape, each)))).toEqual([]);
  });

  it("messages", async () => {
    const args = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"], permissionMode: "dontAsk" };
    const { data } = await stream(server, "claude_code_query", args);
    const messages = data["messages"] as object[];
    expect(shapes("messages").filter((shape) => !messages.some((each) => isLike(shape, each)))).toEqual([]);
  });
});

it("there is an example of every tool", async () => {
  const { tools } = await server.client.listTools();
  expect(examples.map(({ tool }) => tool).toSorted()).toEqual(tools.map(({ name }) => name).toSorted());
});
