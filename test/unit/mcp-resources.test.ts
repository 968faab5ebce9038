import { Client, ProtocolError } from "@modelcontextprotocol/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorCode } from "../../src/domain/refusal.ts";
import { SessionOptions } from "../../src/domain/options.ts";
import { Wire } from "../kit/clients/mcp-wire.ts";

const info = { name: "test", version: "1.0.0" };

describe.each([
  ["2025", () => new Client(info)],
  ["2026", () => new Client(info, { versionNegotiation: { mode: "auto" } })],
])("resources, %s era", (_, newClient) => {
  let wire: Wire;
  let client: Client;
  beforeEach(async () => {
    wire = new Wire();
    client = newClient();
    await client.connect(wire);
  });
  afterEach(async () => client.close());

  async function textOf(uri: string): Promise<string> {
    const { contents } = await client.readResource({ uri });
    expect(contents).toMatchObject([{ uri, mimeType: expect.any(String) as string }]);
    const [content] = contents;
    return content && "text" in content ? content.text : "";
  }

  async function refusalOf(uri: string): Promise<{ code: number; message: string; data: unknown }> {
    const error: unknown = await client.readResource({ uri }).catch((each: unknown) => each);
    if (!(error instanceof ProtocolError)) throw new Error(`${uri} was read, or failed otherwise`);
    const { code, data, message } = error;
    return { code, message, data };
  }

  it("resources are listed with their descriptions, and reference pages are read without starting the engine", async () => {
    const { resources } = await client.listResources();
    const uris = resources.map(({ uri }) => uri);
    const names = ["quickstart", "permissions", "errors", "options", "profiles"];
    const skill = "skill://claude-agents/delegate/SKILL.md";
    expect(uris).toEqual([...names.map((name) => `claude-code://${name}`), skill]);
    for (const { description, mimeType, uri } of resources) {
      expect(description).toMatch(/\.$/);
      if (uri === "claude-code://profiles") continue;
      expect(mimeType).toBe("text/markdown");
      expect(await textOf(uri)).toMatch(/^(?:---\nname: [^]*\n---\n\n)?# /);
    }
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      "claude-code://sessions/{id}",
      "claude-code://sessions/{id}/events{?cursor,limit}",
    ]);
    expect(wire.depsMade).toBe(0);
  });

  it.each([
    ["options", 13_000],
    ["errors", 4_000],
    ["permissions", 4_000],
    ["quickstart", 4_000],
  ])("claude-code://%s has at most %i characters: a model reads the whole page", async (name, most) => {
    expect((await textOf(`claude-code://${name}`)).length).toBeLessThanOrEqual(most);
  });

  it("the reference pages list every error code and every option with its bounds", async () => {
    const codes = await textOf("claude-code://errors");
    for (const code of ErrorCode.options) expect(codes).toMatch(new RegExp(`^- ${code}: .+\\. .+\\.$`, "m"));
    const options = await textOf("claude-code://options");
    for (const name of SessionOptions.keyof().options) expect(options).toMatch(new RegExp(`^- \`${name}\` \\(`, "m"));
    expect(options).toContain("- `effort` (`low`, `medium`, `high`, `xhigh`, `max`): Default: Claude Code's.");
    expect(options).toContain("- `maxTurns` (integer, 1 to 100000): Model round trips");
  });

  it("the resource of a session equals its entry in `claude_code_session`, without its folder", async () => {
    const session = wire.engine.add("s1", { cwd: "/secret", model: "opus" });
    session.startTurn();
    const got = await client.callTool({ name: "claude_code_session", arguments: { action: "get", sessionId: "s1" } });
    const { sessions } = got.structuredContent as { sessions: object[] };
    expect(JSON.parse(await textOf("claude-code://sessions/s1"))).toEqual(sessions[0]);
    expect(await textOf("claude-code://sessions/s1")).not.toContain("secret");
  });

  it("events are read in pages by `cursor` and `limit`", async () => {
    const session = wire.engine.add();
    session.startTurn();
    for (const word of ["one", "two", "three"]) session.emitText(word);
    session.finishTurn("done");
    const whole = JSON.parse(await textOf("claude-code://sessions/s1/events")) as { events: object[] };
    expect(whole).toMatchObject({ sessionId: "s1", status: "idle", nextCursor: 7, lastEventId: 6 });
    expect(whole.events).toMatchObject([
      { id: 2, data: { text: "one" } },
      { id: 3, data: { text: "two" } },
      { id: 4, data: { text: "three" } },
      { id: 6, type: "result", data: { result: "done" } },
    ]);
    for (const query of ["cursor=3&limit=1", "limit=1&cursor=3"]) {
      const page = JSON.parse(await textOf(`claude-code://sessions/s1/events?${query}`)) as object;
      expect(page).toMatchObject({ events: [{ id: 3 }], nextCursor: 4, truncatedFields: ["events"] });
    }
    expect(JSON.parse(await textOf("claude-code://sessions/s1/events?cursor=7"))).toMatchObject({
      events: [],
      nextCursor: 7,
    });
    // Reading does not count as the delivery of a request.
    expect(wire.engine.delivers).toEqual([]);
  });

  it("a page of events has at most 32,768 bytes, and no event is lost", async () => {
    const session = wire.engine.add();
    session.startTurn();
    for (let index = 0; index < 60; index += 1) session.emitText("x".repeat(1_500));
    const ids: number[] = [];
    let cursor = 1;
    while (cursor <= session.events.length) {
      const text = await textOf(`claude-code://sessions/s1/events?cursor=${String(cursor)}`);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768);
      const page = JSON.parse(text) as { events: { id: number }[]; nextCursor: number };
      ids.push(...page.events.map(({ id }) => id));
      cursor = page.nextCursor;
    }
    expect(ids).toEqual(Array.from({ length: 60 }, (__, index) => index + 2));
  });

  it.each([
    "claude-code://sessions/nobody",
    "claude-code://sessions/nobody/events",
    "claude-code://sessions/s1/secrets",
    "claude-code://sessions/",
    "claude-code://everything",
    "file:///etc/passwd",
    "no uri",
  ])("the resource %s is reported as not found", async (uri) => {
    wire.engine.add();
    const { code, message, data } = await refusalOf(uri);
    expect(code).toBe(-32_602);
    expect(data).toEqual({ uri });
    const known = uri.includes("nobody");
    expect(message).toMatch(
      known ? /SESSION_NOT_FOUND.*nobody.*claude_code_session/ : /There are: claude-code:\/\/quick/,
    );
  });

  it.each([
    ["cursor=0", /cursor: must be a whole number from 1/],
    ["limit=1001", /limit: must be a whole number from 1 to 1000, not "1001"/],
    ["cursor=x", /cursor: must be/],
    ["page=2", /page: is not a parameter/],
  ])("events with the query ?%s are refused", async (query, says) => {
    wire.engine.add();
    const { code, message, data } = await refusalOf(`claude-code://sessions/s1/events?${query}`);
    expect([code, data]).toMatchObject([-32_602, { code: "INVALID_ARGUMENT" }]);
    expect(message).toMatch(says);
  });

  it("an internal error is reported only by an id", async () => {
    wire.engine.get = () => Promise.reject(new Error("password=hunter2"));
    const { code, message } = await refusalOf("claude-code://sessions/s1");
    expect(code).toBe(-32_603);
    expect(message).toMatch(/Error \[INTERNAL\]: The server failed \(fault [0-9a-f]{8}\)/);
    expect(wire.warnings).toMatchObject([{ uri: "claude-code://sessions/s1", error: new Error("password=hunter2") }]);
  });
});
