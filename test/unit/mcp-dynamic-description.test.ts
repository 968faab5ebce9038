import { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { DynamicDescription } from "../../src/tools/dynamic-description.ts";
import { Wire } from "../kit/clients/mcp-wire.ts";
import { depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import type { FakeSession } from "../kit/tools/fake-session.ts";

const info = { name: "test", version: "1.0.0" };

function reports(session: FakeSession, tools: string[]): void {
  session.emit({ type: "message", data: { message: { type: "system", subtype: "init", model: "m", tools } } });
}

describe.each([
  ["2025", {}],
  ["2026", { versionNegotiation: { mode: "auto" as const } }],
])("--dynamic-description, %s era", (_, era) => {
  async function connect(isDynamic: boolean) {
    const engine = new FakeEngine();
    const reported = isDynamic ? new DynamicDescription() : undefined;
    const deps = { ...depsOf(engine), reported };
    const wire = new Wire({ reported, deps: () => Promise.resolve(deps) });
    let changes = 0;
    const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void (changes += 1) } };
    const client = new Client(info, { ...era, listChanged });
    await client.connect(wire);
    const poll = async () =>
      client.callTool({ name: "claude_code_check", arguments: { action: "poll", sessionId: "s1", waitMs: 0 } });
    const described = async () => {
      const { tools } = await client.listTools();
      return Object.fromEntries(tools.map(({ name, description }) => [name, description ?? ""]));
    };
    return { client, engine, poll, described, changes: () => changes };
  }

  it("the description names the tools that Claude Code reported, and changes are announced", async () => {
    const { client, engine, poll, described, changes } = await connect(true);
    expect(client.getServerCapabilities()?.tools).toEqual({ listChanged: true });
    const before = await described();
    expect(before["claude_code"]).not.toContain("Tools of Claude Code");
    const session = engine.add();
    session.startTurn();
    // `Task` is the former name of `Agent`; calls and requests use `Agent`.
    reports(session, ["Task", "Read", "Bash", "mcp__own__tool"]);
    await poll();
    await expect.poll(changes).toBe(1);
    const after = await described();
    expect(after["claude_code"]).toBe(`${before["claude_code"] ?? ""} Tools of Claude Code: Agent, Read, Bash.`);
    expect({ ...after, claude_code: "" }).toEqual({ ...before, claude_code: "" });

    // A report of equal tools announces no change.
    await poll();
    reports(session, ["Agent", "Read", "Bash", "mcp__other__tool"]);
    await poll();
    reports(session, ["Read"]);
    await poll();
    await expect.poll(changes).toBe(2);
    expect((await described())["claude_code"]).toMatch(/Tools of Claude Code: Read\.$/);
    expect(changes()).toBe(2);
    await client.close();
  });

  it("without the flag the description never changes, and no change is announced", async () => {
    const { client, engine, poll, described, changes } = await connect(false);
    expect(client.getServerCapabilities()?.tools).toEqual({ listChanged: false });
    const before = await described();
    const session = engine.add();
    session.startTurn();
    reports(session, ["Read"]);
    await poll();
    expect(await described()).toEqual(before);
    expect(changes()).toBe(0);
    await client.close();
  });
});
