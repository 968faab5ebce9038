import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import type { RequestRecord } from "../../src/demo/model/server.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { runScript, requestsOf } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const ok = [{ text: "ok" }];
const least = { command: process.execPath, args: [resolve("test/kit/servers/least-server.mjs")] };
const scout = {
  description: "Looks around.",
  prompt: "You are a scout of the harbour.",
  tools: ["Read", "Bash"],
  disallowedTools: ["Bash"],
  model: "claude-haiku-5-5",
  initialPrompt: "Begin with the lighthouse.",
};

const world = useWorld();
let server: Server;
/** Session with few tools, a single skill and an agent; uses the skill and starts the agent. */
let few: Answer;
/** `all`: session with all tools. `alone`: session with a single MCP server and no other tools. */
let all: Answer;
let alone: Answer;
beforeAll(async () => {
  server = await world.server();
  for (const name of ["harbour", "tide"]) {
    const folder = join(world.configFolder, "skills", name);
    mkdirSync(folder, { recursive: true });
    const text = `---\nname: ${name}\ndescription: All about the ${name}.\n---\nSpeak of the ${name}.\n`;
    writeFileSync(join(folder, "SKILL.md"), text);
  }
  const errand = { description: "look", subagent_type: "scout", prompt: `Look. ${scriptTag([{ text: "Quiet." }])}` };
  const calls = [
    { name: "Skill", input: { skill: "tide" } },
    { name: "Agent", input: { ...errand, run_in_background: false } },
  ];
  const chosen = { tools: ["Agent", "Bash", "Read", "Skill"], skills: ["tide"], agents: { scout } };
  few = await start({ advanced: chosen }, [...calls.map((each) => ({ tools: [each] })), ...ok]);

  writeFileSync(join(world.configFolder, ".claude.json"), JSON.stringify({ mcpServers: { mine: least } }));
  const mcpServers = { given: { ...least, env: { SECRET_OF_THE_SERVER: "swordfish" } } };
  // All tools are in the request only without `ENABLE_TOOL_SEARCH`.
  const env = { ENABLE_TOOL_SEARCH: "false" };
  const preset = { type: "preset", preset: "claude_code" };
  all = await start({ advanced: { tools: preset, mcpServers, env } });
  alone = await start({ advanced: { tools: [], mcpServers, strictMcpConfig: true, env } });
});

const start = async (options: object, script: Parameters<typeof scriptTag>[0] = ok) =>
  runScript(server, script, { cwd: world.folder(), ...options });

const first = ({ sessionId }: Answer) => requestsOf(world, sessionId)[0];

/** Removes `DeferredToolPlaceholder`, sent by Claude Code for tools that may come later. */
function usable(request: RequestRecord | undefined): string[] {
  return request?.tools.filter((name) => name !== "DeferredToolPlaceholder").toSorted() ?? [];
}

describe("an option of `claude_code` that gives tools", () => {
  it("`tools` selects among Claude Code's own tools", () => {
    expect(usable(first(few))).toEqual(["Agent", "Bash", "Read", "Skill"]);
    expect(usable(first(all))).toEqual(expect.arrayContaining(["Bash", "Edit", "Write"]));
    expect(usable(first(alone))).toEqual(["mcp__given__look"]);
  });

  it("`mcpServers` start beside the user's own, or alone with `strictMcpConfig`", () => {
    expect(usable(first(all))).toEqual(expect.arrayContaining(["mcp__mine__look", "mcp__given__look"]));
    expect(usable(first(alone))).toContain("mcp__given__look");
    expect(usable(first(alone)).filter((name) => name.startsWith("mcp__mine"))).toEqual([]);
    // Every user of the machine can read command lines, so that no secret may be there.
    const commands = world.processes().map(({ command }) => command);
    expect(commands.some((command) => command.includes("stream-json"))).toBe(true);
    expect(commands.filter((command) => command.includes("swordfish"))).toEqual([]);
  });

  it("`warnings` name a server of `mcpServers` that does not start, with the reason", async () => {
    const cwd = world.folder();
    const absent = { command: join(cwd, "absent") };
    const advanced = { mcpServers: { given: least, absent }, strictMcpConfig: true };
    const answer = await server.call("claude_code", { prompt: "Look.", cwd, advanced, waitMs: 40_000 });
    expect(answer["warnings"]).toEqual([expect.stringMatching(/^mcpServers: absent \(.+\) did not start/)]);
  });

  it("`skills` leaves out all other skills", () => {
    const listed = (session: Answer) =>
      ["harbour", "tide"].filter((name) => first(session)?.told.includes(`All about the ${name}.`));
    expect(listed(all)).toEqual(["harbour", "tide"]);
    expect(listed(few)).toEqual(["tide"]);
    // A given skill may be used unasked.
    expect(few).toMatchObject({ result: { result: "ok" }, actions: [] });
    expect(requestsOf(world, few.sessionId)[1]?.told).toContain("Speak of the tide.");
  });
});

describe("an option of `claude_code` that makes agents", () => {
  it("`agents` sets prompt, tools and model of subagents", () => {
    expect(few.result?.result).toBe("ok");
    const [request] = requestsOf(world, few.sessionId, true);
    expect(request?.model).toBe("claude-haiku-5-5");
    expect(usable(request)).toEqual(["Read"]);
    expect(request?.system).toContain("You are a scout of the harbour.");
    expect(first(few)?.model).not.toBe("claude-haiku-5-5");
  });

  it("`agent` runs the main thread as an agent", async () => {
    const session = await start({
      systemPrompt: { type: "preset", preset: "claude_code" },
      advanced: { agents: { scout }, agent: "scout", strictMcpConfig: true },
    });
    const request = first(session);
    expect(request?.model).toBe("claude-haiku-5-5");
    expect(usable(request)).toEqual(["Read"]);
    expect(request?.system).toContain("You are a scout of the harbour.");
    expect(request?.told).toContain("Begin with the lighthouse.");
  });

  it("an unknown `agent` is refused with the known names, and no prompt is sent", async () => {
    const { result, sessionId } = await start({ advanced: { agents: { scout }, agent: "scuot" } });
    expect(result).toMatchObject({ isError: true, errorSubtype: "unknown_agent" });
    expect(JSON.stringify(result)).toMatch(/there is no agent scuot; available: .*general-purpose.*scout/);
    expect(requestsOf(world, sessionId)).toEqual([]);
  });
});
