import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import type { RequestRecord } from "../../src/demo/model/server.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { play, requestsOf } from "../support/one-turn.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const ok = [{ text: "ok" }];

/** Any MCP server will do; ours is at hand. Its command differs from that of the outer one, which is kept out. */
const main = resolve("dist/cli/main.js");
const mcpServer = { command: process.execPath, args: [main, "serve", "--log-level", "silent"] };

async function toolsWith(options: object): Promise<string[]> {
  const { sessionId } = await play(server, ok, { cwd: world.folder(), ...options });
  return usable(requestsOf(world, sessionId)[0]);
}

/** Where tools may come later, Claude Code keeps a place for them. */
function usable(request: RequestRecord | undefined): string[] {
  return request?.tools.filter((name) => name !== "DeferredToolPlaceholder").toSorted() ?? [];
}

describe("an option of `claude_code` that gives tools", () => {
  it("names all of them: `tools`", async () => {
    expect(await toolsWith({ advanced: { tools: ["Bash", "Read"] } })).toEqual(["Bash", "Read"]);
    expect(await toolsWith({ advanced: { tools: [] } })).toEqual([]);
    const preset = { type: "preset", preset: "claude_code" };
    expect(await toolsWith({ advanced: { tools: preset } })).toEqual(expect.arrayContaining(["Bash", "Edit", "Write"]));
  });

  it("starts servers beside the user's own, or alone: `mcpServers`, `strictMcpConfig`", async () => {
    writeFileSync(join(world.configFolder, ".claude.json"), JSON.stringify({ mcpServers: { mine: mcpServer } }));
    const given = { given: { ...mcpServer, env: { SECRET_OF_THE_SERVER: "swordfish" } } };
    // Without tool search all tools stand in the request.
    const env = { ENABLE_TOOL_SEARCH: "false" };
    const both = await toolsWith({ advanced: { mcpServers: given, env } });
    expect(both).toEqual(expect.arrayContaining(["mcp__mine__claude_code", "mcp__given__claude_code"]));
    const alone = await toolsWith({ advanced: { mcpServers: given, strictMcpConfig: true, env } });
    expect(alone).toContain("mcp__given__claude_code");
    expect(alone.filter((name) => name.startsWith("mcp__mine"))).toEqual([]);
    // Every user of the machine can read a command line.
    const commands = world.processes().map(({ command }) => command);
    expect(commands.some((command) => command.includes("stream-json"))).toBe(true);
    expect(commands.filter((command) => command.includes("swordfish"))).toEqual([]);
  });

  it("leaves out skills: `skills`", async () => {
    for (const name of ["harbour", "tide"]) {
      const folder = join(world.configFolder, "skills", name);
      mkdirSync(folder, { recursive: true });
      const text = `---\nname: ${name}\ndescription: All about the ${name}.\n---\nSpeak of the ${name}.\n`;
      writeFileSync(join(folder, "SKILL.md"), text);
    }
    const listed = async (options: object) => {
      const { sessionId } = await play(server, ok, { cwd: world.folder(), ...options });
      const text = requestsOf(world, sessionId)[0]?.told ?? "";
      return ["harbour", "tide"].filter((name) => text.includes(`All about the ${name}.`));
    };
    expect(await listed({})).toEqual(["harbour", "tide"]);
    expect(await listed({ advanced: { skills: ["tide"] } })).toEqual(["tide"]);
    // One that is given may be used unasked.
    const use = { tools: [{ name: "Skill", input: { skill: "tide" } }] };
    const { result, actions, sessionId } = await play(server, [use, ...ok], {
      cwd: world.folder(),
      advanced: { skills: ["tide"] },
    });
    expect({ result, actions }).toMatchObject({ result: { result: "ok" }, actions: [] });
    expect(requestsOf(world, sessionId)[1]?.told).toContain("Speak of the tide.");
  });
});

describe("an option of `claude_code` that makes agents", () => {
  const scout = {
    description: "Looks around.",
    prompt: "You are a scout of the harbour.",
    tools: ["Read", "Bash"],
    disallowedTools: ["Bash"],
    model: "claude-haiku-5-5",
    initialPrompt: "Begin with the lighthouse.",
  };

  it("gives subagents their prompt, tools and model: `agents`", async () => {
    const task = { description: "look", subagent_type: "scout", prompt: `Look. ${scriptTag([{ text: "Quiet." }])}` };
    const call = { tools: [{ name: "Agent", input: { ...task, run_in_background: false } }] };
    const { sessionId, result } = await play(server, [call, ...ok], {
      cwd: world.folder(),
      advanced: { agents: { scout } },
    });
    expect(result?.result).toBe("ok");
    const [request] = requestsOf(world, sessionId, true);
    expect(request?.model).toBe("claude-haiku-5-5");
    expect(usable(request)).toEqual(["Read"]);
    expect(request?.system).toContain("You are a scout of the harbour.");
    expect(requestsOf(world, sessionId)[0]?.model).not.toBe("claude-haiku-5-5");
  });

  it("runs the main thread as one of them: `agent`", async () => {
    const { sessionId } = await play(server, ok, {
      cwd: world.folder(),
      systemPrompt: { type: "preset", preset: "claude_code" },
      advanced: { agents: { scout }, agent: "scout" },
    });
    const [request] = requestsOf(world, sessionId);
    expect(request?.model).toBe("claude-haiku-5-5");
    expect(usable(request)).toEqual(["Read"]);
    expect(request?.system).toContain("You are a scout of the harbour.");
    expect(request?.told).toContain("Begin with the lighthouse.");
  });

  it("refuses an `agent` that there is not, with the names of those that there are, and prompts nobody", async () => {
    const advanced = { agents: { scout }, agent: "scuot" };
    const { result, sessionId } = await play(server, ok, { cwd: world.folder(), advanced });
    expect(result).toMatchObject({ isError: true, errorSubtype: "start_failed" });
    expect(JSON.stringify(result)).toMatch(/there is no agent scuot; available: .*general-purpose.*scout/);
    expect(requestsOf(world, sessionId)).toEqual([]);
  });
});
