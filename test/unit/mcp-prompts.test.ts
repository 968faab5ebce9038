import { Client, ProtocolError } from "@modelcontextprotocol/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listToolNames } from "../../src/tools/tool-names.ts";
import { Wire } from "../kit/clients/mcp-wire.ts";
import type { FakeSession } from "../kit/tools/fake-session.ts";

const info = { name: "test", version: "1.0.0" };

describe.each([
  ["2025", () => new Client(info)],
  ["2026", () => new Client(info, { versionNegotiation: { mode: "auto" } })],
])("prompts, %s era", (_, newClient) => {
  let wire: Wire;
  let client: Client;
  beforeEach(async () => {
    wire = new Wire();
    client = newClient();
    await client.connect(wire);
  });
  afterEach(async () => client.close());

  async function textOf(name: string, args: Record<string, string>): Promise<string> {
    const { messages } = await client.getPrompt({ name, arguments: args });
    expect(messages).toMatchObject([{ role: "user", content: { type: "text" } }]);
    const [message] = messages;
    return message?.content.type === "text" ? message.content.text : "";
  }

  async function refusalOf(name: string, args: Record<string, string>): Promise<string> {
    const error: unknown = await client.getPrompt({ name, arguments: args }).catch((each: unknown) => each);
    if (!(error instanceof ProtocolError)) throw new Error(`the prompt ${name} was not refused`);
    expect(error.code).toBe(-32_602);
    return error.message;
  }

  it("prompts are listed with their arguments, without starting the engine", async () => {
    const { prompts } = await client.listPrompts();
    const asked = prompts.map(({ arguments: args = [], name }) => [
      name,
      args.map((each) => each.name + (each.required === true ? "" : "?")).join(" "),
    ]);
    expect(asked).toEqual([
      ["delegate", "task cwd? model? agent? skill?"],
      ["review", "sessionId? cwd?"],
      ["resume", "sessionId"],
    ]);
    for (const { arguments: args = [] } of prompts)
      for (const { description } of args) expect(description).toMatch(/\w/);
    expect(wire.depsMade).toBe(0);
  });

  it("delegate describes how to hand over the task, and leaves out arguments that are not given", async () => {
    const text = await textOf("delegate", {
      task: "Fix <it>",
      cwd: "/home/ann/p",
      model: "haiku",
      agent: "",
      skill: "tidy",
    });
    expect(text).toContain("<task>\nFix <it>\n</task>");
    expect(text).toContain('claude_code {"prompt":"...","cwd":"/home/ann/p","model":"haiku","waitMs":30000}');
    expect(text).toContain('the skill "tidy"');
    expect(text).not.toContain("You cannot answer requests");
    expect(wire.depsMade).toBe(0);
  });

  it("review requires either a session or a folder", async () => {
    const session = wire.engine.add();
    session.startTurn();
    expect(await textOf("review", { sessionId: "s1" })).toMatch(
      /session s1[^]*running[^]*"action":"diff","sessionId":"s1"/,
    );
    expect(await textOf("review", { cwd: "/home/ann/p" })).toMatch(
      /claude_code \{[^\n]*"cwd":"\/home\/ann\/p"[^\n]*"disallowedTools":/,
    );
    expect(await refusalOf("review", {})).toContain("INVALID_ARGUMENT]: sessionId: is required, or cwd");
    expect(await refusalOf("review", { sessionId: "s1", cwd: "/" })).toContain(
      "cwd: cannot be combined with sessionId",
    );
    expect(await refusalOf("review", { sessionId: "s2" })).toContain("SESSION_NOT_FOUND");
  });

  it("resume reports the state of the session", async () => {
    const session = wire.engine.add();
    expect(await textOf("resume", { sessionId: "s1" })).toContain("It has had no prompt yet.");
    session.startTurn();
    session.openRequest();
    expect(await textOf("resume", { sessionId: "s1" })).toMatch(
      /waiting_permission[^]*Open requests:\n- permission r1: [^]*"cursor":2/,
    );
    session.finishTurn("All done.");
    expect(await textOf("resume", { sessionId: "s1" })).toMatch(
      /idle[^]*<result>\nAll done\.\n<\/result>[^]*claude_code_reply/,
    );
    expect(await refusalOf("resume", { sessionId: "s2" })).toContain(
      "Error [SESSION_NOT_FOUND]: There is no session s2.",
    );
  });

  it("resume reports a failed turn, queued and held prompts, and a cancelled session", async () => {
    const session = wire.engine.add();
    session.finishTurn("It broke.", { outcome: "failed", isError: true, errorSubtype: "max_turns" });
    session.state.queue = [
      { promptId: "a", eventId: 1 },
      { promptId: "b", eventId: 1, held: true },
    ];
    const waiting = await textOf("resume", { sessionId: "s1" });
    expect(waiting).toMatch(/The last turn failed \(max_turns\)\.[^]*1 prompts are queued\.[^]*1 prompts are held/);
    session.startTurn();
    session.state.waiting = { kind: "usage_limit", window: "five_hour", since: 0 };
    const standing = "It is running and waits at the limit of the 5-hour window; model calls";
    expect(await textOf("resume", { sessionId: "s1" })).toContain(standing);
    expect(await textOf("resume", { sessionId: "s1" })).toMatch(/A turn is running\.[^]*Follow it to its end with/);
    session.state.closed = { reason: "cancelled", by: "me", at: 0 };
    expect(await textOf("resume", { sessionId: "s1" })).toContain("start a new session (claude_code)");
  });

  it.each([
    ["delegate", {}, "Error [INVALID_ARGUMENT]: task: is required"],
    ["delegate", { task: "x", modle: "haiku" }, "modle: unknown option. Did you mean model?"],
    ["delgate", { task: "x" }, 'there is no prompt "delgate". There are: delegate, review, resume.'],
  ])("the prompt %s with %j is refused with a message", async (name, args, says) => {
    expect(await refusalOf(name, args)).toContain(says);
  });
});

describe("completion", () => {
  let wire: Wire;
  let client: Client;
  beforeEach(async () => {
    wire = new Wire();
    client = new Client(info);
    await client.connect(wire);
  });
  afterEach(async () => client.close());

  const resume = { type: "ref/prompt", name: "resume" } as const;
  const delegate = { type: "ref/prompt", name: "delegate" } as const;
  const template = (uri: string) => ({ type: "ref/resource", uri }) as const;

  async function complete(ref: Parameters<Client["complete"]>[0]["ref"], name: string, value: string, cwd?: string) {
    const context = cwd === undefined ? {} : { context: { arguments: { cwd } } };
    return (await client.complete({ ref, argument: { name, value }, ...context })).completion;
  }

  function add(id: string, title?: string, cwd = "/home/me"): FakeSession {
    const session = wire.engine.add(id, { cwd });
    session.title = title;
    return session;
  }

  it("completion finds sessions by a prefix of the id and by words of the title, the newest first", async () => {
    add("abc-1", "Mend the parser");
    add("abd-2", "Write docs for the parser");
    add("x-3");
    const ids = async (text: string) => (await complete(resume, "sessionId", text)).values;
    expect(await ids("")).toEqual(["x-3", "abd-2", "abc-1"]);
    expect(await ids("ab")).toEqual(["abd-2", "abc-1"]);
    expect(await ids("PARS doc")).toEqual(["abd-2"]);
    expect(await ids("arser")).toEqual([]);
    for (const uri of ["claude-code://sessions/{id}", "claude-code://sessions/{id}/events{?cursor,limit}"]) {
      expect((await complete(template(uri), "id", "abc")).values).toEqual(["abc-1"]);
    }
    expect(wire.engine.queries.every(({ principal }) => principal === "local")).toBe(true);
  });

  it("completion returns at most 100 values, and the total", async () => {
    for (let each = 0; each < 120; each += 1) add(`s-${String(each)}`);
    const { values, ...rest } = await complete(resume, "sessionId", "s-");
    expect([values.length, rest]).toEqual([100, { total: 120, hasMore: true }]);
  });

  it("completion returns only models, agents and skills that Claude Code reported", async () => {
    const reports = (session: FakeSession, agents: string[]) => {
      const message = { type: "system", subtype: "init", model: "m", agents, skills: ["tidy"] };
      session.emit({ type: "message", data: { message } });
    };
    expect((await complete(delegate, "model", "")).values).toEqual([]);
    const here = add("here", undefined, "/here");
    here.state.reported = { model: "claude-haiku" };
    reports(here, ["Explore", "mine"]);
    reports(add("there", undefined, "/there"), ["Explore", "theirs"]);
    expect((await complete(delegate, "model", "Claude")).values).toEqual(["claude-haiku"]);
    expect((await complete(delegate, "agent", "")).values).toEqual(["Explore", "theirs", "mine"]);
    expect((await complete(delegate, "agent", "m")).values).toEqual(["mine"]);
    expect((await complete(delegate, "skill", "ti")).values).toEqual(["tidy"]);
    expect((await complete(delegate, "task", "x")).values).toEqual([]);
  });

  it("completion returns folders of sessions, and folders that begin with the typed path", async () => {
    add("one", undefined, "/home/ann/one");
    add("two", undefined, "/home/ann/two");
    add("three", undefined, "/home/ann/one");
    const folders = async (principal: string, typed: string) =>
      Promise.resolve(["/home/ann/one", `${typed}ther-of-${principal}`]);
    Object.assign(wire.deps, { folders });
    expect((await complete(delegate, "cwd", "/home/ann/o")).values).toEqual([
      "/home/ann/one",
      "/home/ann/other-of-local",
    ]);
  });

  it.each([
    [resume, "task", "there is no argument task of the prompt resume"],
    [{ type: "ref/prompt", name: "nothing" } as const, "x", "there is no argument x of the prompt nothing"],
    [
      template("claude-code://sessions/{id}"),
      "limit",
      "there is no variable limit of the resource claude-code://sessions/{id}",
    ],
    [template("weather://{city}"), "city", "there is no variable city of the resource weather://{city}"],
  ])("completion is refused for an unknown argument: %j %s", async (ref, name, says) => {
    await expect(complete(ref, name, "")).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining(says) as string,
    });
  });
});

it("prompts are hidden if the tools that they use are not listed", async () => {
  const wire = new Wire({ toolNames: listToolNames(["query"], { enabled: true }) });
  const client = new Client(info);
  await client.connect(wire);
  expect(client.getServerCapabilities()).toMatchObject({ completions: {} });
  expect(client.getServerCapabilities()?.prompts).toBeUndefined();
  const ref = { type: "ref/prompt", name: "resume" } as const;
  await expect(client.complete({ ref, argument: { name: "sessionId", value: "" } })).rejects.toThrow("no argument");
  await client.close();
});
