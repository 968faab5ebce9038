import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import type { RequestRecord } from "../../src/demo/model/server.ts";
import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { hear, ofKind, play, requestsOf, told } from "../support/one-turn.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();
let server: Server;
/** Sessions with a subagent that stands: a summary of it comes after half a minute, in which the other tests run. */
let standing: { silent: string; asked: string };
beforeAll(async () => {
  server = await world.server();
  standing = { silent: await stand({}), asked: await stand({ agentProgressSummaries: true }) };
});

const ok = [{ text: "ok" }];
const quiet = [{ text: "Quiet." }];
const look = { tools: [{ name: "Bash", input: { command: "ls" } }] };

/** Any MCP server will do; ours is at hand. Its command differs from that of the outer one, which is kept out. */
const main = resolve("dist/cli/main.js");
const mcpServer = { command: process.execPath, args: [main, "serve", "--log-level", "silent"] };

const agent = (name: string, fields: object = {}) => ({
  description: `${name} looks around.`,
  prompt: `You are ${name}.`,
  ...fields,
});

/** The call that sends an agent to play a script, and waits for it. */
const send = (name: string, script: Script) => ({
  name: "Agent",
  input: { description: "look", subagent_type: name, prompt: `Look. ${scriptTag(script)}`, run_in_background: false },
});

/** Starts a session whose subagent's own request stops in mid-stream; the one for a summary of it meets no fault. */
async function stand(advanced: object): Promise<string> {
  const stands: Script[number] = { text: ["Reading", " the harbour map."], hang: "mid-stream", times: 1 };
  const script = [{ tools: [send("general-purpose", [look, stands])] }, ...ok];
  return (await server.call("claude_code", { prompt: scriptTag(script), cwd: world.folder(), advanced })).sessionId;
}

/** What an agent has asked of the model. */
const askedBy = (name: string, sessionId: string) =>
  world.model.requests.filter((each) => each.sessionId === sessionId && each.system.includes(`You are ${name}.`));

interface Errand {
  /** What `scout` has and `plain` has not. */
  fields: object;
  /** What both have. */
  shared?: object;
  script: (name: string) => Script;
  cwd?: string;
  advanced?: object;
}

/** Sends two agents at once that differ in nothing but the fields. */
async function sendBoth({ fields, shared = {}, script, cwd = world.folder(), advanced = {} }: Errand) {
  const agents = { plain: agent("plain", shared), scout: agent("scout", { ...shared, ...fields }) };
  const tools = [send("plain", script("plain")), send("scout", script("scout"))];
  const answer = await play(server, [{ tools }, ...ok], { cwd, advanced: { agents, ...advanced } });
  const { sessionId } = answer;
  const [first] = requestsOf(world, sessionId);
  return { answer, session: first, plain: askedBy("plain", sessionId), scout: askedBy("scout", sessionId) };
}

// A name that begins with a dot is a field of an agent; some options have the same names.
describe("an agent of the option `agents` of `claude_code`", () => {
  it("is offered by its `.description`, begins with its `.skills`, `.memory` and `.effort`, and as `.omitClaudeMd` says", async () => {
    const cwd = world.folder();
    const memory = join(cwd, ".claude", "agent-memory-local", "scout");
    const skill = join(world.configFolder, "skills", "tide");
    for (const folder of [memory, skill]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(memory, "MEMORY.md"), "The harbour freezes.");
    writeFileSync(join(skill, "SKILL.md"), "---\nname: tide\ndescription: The tide.\n---\nSpeak of the tide.\n");
    writeFileSync(join(cwd, "CLAUDE.md"), "Mind the lighthouse.");
    const fields = { description: "Knows the sea.", skills: ["tide"], memory: "local", effort: "low" };
    const { session, plain, scout } = await sendBoth({
      fields: { ...fields, omitClaudeMd: true },
      script: () => quiet,
      cwd,
    });
    expect(session?.told).toContain("- plain: plain looks around.");
    expect(session?.told).toContain("- scout: Knows the sea.");
    const begins = ([request]: RequestRecord[]) => ({
      skill: request?.told.includes("Speak of the tide."),
      memory: request?.system.includes("The harbour freezes."),
      memoryFolder: request?.system.includes(memory),
      effort: request?.outputConfig["effort"],
      claudeMd: request?.told.includes("Mind the lighthouse."),
    });
    expect(begins(plain)).toEqual({
      skill: false,
      memory: false,
      memoryFolder: false,
      effort: "medium",
      claudeMd: true,
    });
    expect(begins(scout)).toEqual({ skill: true, memory: true, memoryFolder: true, effort: "low", claudeMd: false });
  });

  it("stops after its `.maxTurns`", async () => {
    const script = [look, look, look, ...quiet];
    const { plain, scout, answer } = await sendBoth({ fields: { maxTurns: 2 }, script: () => script });
    expect([plain.length, scout.length]).toEqual([4, 2]);
    expect(answer.result?.result).toBe("ok");
  });

  it("compacts at its `.autoCompactWindow`", async () => {
    // What the model says while it works is its answer to the request for a summary, too.
    const step = { ...look, text: "<summary>I saw the harbour.</summary>", usage: { input_tokens: 120_000 } };
    const { plain, scout } = await sendBoth({
      fields: { autoCompactWindow: 100_000 },
      script: () => [step, step, step, ...quiet],
    });
    const goesOn = "This session is being continued from a previous conversation";
    expect(plain).toHaveLength(4);
    expect(plain.filter((each) => each.told.includes(goesOn))).toEqual([]);
    const last = scout.at(-1);
    expect(last?.told).toContain(goesOn);
    expect(last?.told).toContain("I saw the harbour.");
    expect(last?.told).not.toContain("<model-script>");
  });

  it("is asked for less than the session in its `.permissionMode`", async () => {
    const cwd = world.folder();
    const file = (name: string) => join(cwd, `${name}.txt`);
    const { answer } = await sendBoth({
      fields: { permissionMode: "acceptEdits" },
      script: (name) => [{ tools: [{ name: "Write", input: { file_path: file(name), content: "x" } }] }, ...quiet],
      cwd,
    });
    expect(answer.actions).toMatchObject([{ toolName: "Write", input: { file_path: file("plain") } }]);
    const end = await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId: answer.sessionId,
      requestId: answer.actions[0]?.requestId,
      decision: "deny",
      until: "end",
      waitMs: 40_000,
    });
    expect(end).toMatchObject({ result: { result: "ok" }, actions: [] });
    expect([existsSync(file("plain")), existsSync(file("scout"))]).toEqual([false, true]);
  });

  it("runs behind the session even when it is not asked to: `.background`", async () => {
    /** What the turn ends with when the agent is held until the session, or the agent, has asked this much. */
    const lastWords = async (fields: object, until: { subagent: boolean; entry: number }) => {
      const cwd = world.folder();
      const call = { tools: [send("scout", [{ gateBefore: cwd, text: "Quiet." }])] };
      const { sessionId } = await server.call("claude_code", {
        prompt: scriptTag([call, { text: "I go on." }, { text: "The scout is back." }]),
        cwd,
        advanced: { agents: { scout: agent("scout", fields) } },
      });
      await world.model.waitForRequest(
        ({ served, ...request }) =>
          request.sessionId === sessionId &&
          request.subagent === until.subagent &&
          "entry" in served &&
          served.entry === until.entry,
      );
      world.model.release(cwd);
      return (await server.end(sessionId)).result?.result;
    };
    expect(await lastWords({}, { subagent: true, entry: 0 })).toBe("I go on.");
    expect(await lastWords({ background: true }, { subagent: false, entry: 1 })).toBe("The scout is back.");
  });

  it("is watched by its `.observer`, who is told its `.observerMessage`, where Claude Code's experiment is on", async () => {
    const start = async (env: object) => {
      const fields = { observer: "warden", observerMessage: "Think of the lighthouse." };
      const agents = { plain: agent("plain"), scout: agent("scout", fields), warden: agent("warden") };
      const { sessionId } = await play(
        server,
        [{ tools: [send("plain", quiet)] }, { tools: [send("scout", [{ text: "All is dark." }])] }, ...ok],
        { cwd: world.folder(), advanced: { agents, env } },
      );
      return sessionId;
    };
    const off = await start({});
    const on = await start({ CLAUDE_CODE_EXPERIMENTAL_OBSERVER_AGENTS: "1" });
    const digest = await world.model.waitForRequest(
      ({ sessionId, system }) => sessionId === on && system.includes("You are warden."),
    );
    expect(digest.told).toContain('You are a background observer paired with the agent "scout".');
    expect(digest.told).toContain("All is dark.");
    expect(digest.told).toContain("Think of the lighthouse.");
    expect(askedBy("warden", on).filter((each) => each.told.includes('the agent "plain"'))).toEqual([]);
    expect([askedBy("scout", off).length, askedBy("warden", off).length]).toEqual([1, 0]);
  });

  it("has the servers that it names or brings: `.mcpServers`", async () => {
    writeFileSync(join(world.configFolder, ".claude.json"), JSON.stringify({ mcpServers: { mine: mcpServer } }));
    const { session, plain, scout } = await sendBoth({
      shared: { tools: ["Read"] },
      fields: { mcpServers: ["mine", "given", { own: mcpServer }] },
      script: () => quiet,
      // Without tool search all tools stand in the request.
      advanced: { mcpServers: { given: mcpServer }, env: { ENABLE_TOOL_SEARCH: "false" } },
    });
    const serversOf = (request?: RequestRecord) => [
      ...new Set(request?.tools.map((name) => (name.startsWith("mcp__") ? name.split("__")[1] : name))),
    ];
    expect(serversOf(session)).toEqual(expect.arrayContaining(["Read", "mine", "given"]));
    expect(serversOf(session)).not.toContain("own");
    expect(serversOf(plain[0])).toEqual(["Read"]);
    // Claude Code looks names up in the settings files only, not among the servers that the session is given.
    expect(serversOf(scout[0])).toEqual(["Read", "mine", "own"]);
  });
});

describe("an option of `claude_code` about subagents", () => {
  it("tells in summaries what they are at: `agentProgressSummaries`", async () => {
    const { asked, silent } = standing;
    expect(await hear(server, asked, "backgroundTask")).toEqual([
      { id: expect.any(String), status: "running", summary: "Reading the harbour map." },
    ]);
    // By now the other has stood as long.
    const still = await told(server, silent);
    expect(still.status).toBe("running");
    expect(ofKind(still, "backgroundTask")).toEqual([]);
    const steps = world.model.requests.filter(({ sessionId, subagent }) => sessionId === silent && subagent);
    expect(steps).toHaveLength(2);
  });
});
