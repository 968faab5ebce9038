import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import type { RequestRecord } from "../../src/demo/model/server.ts";
import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { waitForKind, dataOfKind, runScript, requestsOf, readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const agent = (name: string, fields: object = {}) => ({
  description: `${name} looks around.`,
  prompt: `You are ${name}.`,
  ...fields,
});

const LEAST = { command: process.execPath, args: [resolve("test/kit/servers/least-server.mjs")] };

const WATCHED = agent("watched", { observer: "warden", observerMessage: "Think of the lighthouse." });

/** Agents of `session`. Each but `warden` differs from `plain` in the fields under test. */
const AGENTS = {
  plain: agent("plain"),
  keen: agent("keen", {
    description: "Knows the sea.",
    skills: ["tide"],
    memory: "local",
    effort: "low",
    omitClaudeMd: true,
  }),
  brief: agent("brief", { maxTurns: 2 }),
  narrow: agent("narrow", { autoCompactWindow: 100_000 }),
  editor: agent("editor", { permissionMode: "acceptEdits" }),
  behind: agent("behind", { background: true }),
  watched: WATCHED,
  warden: agent("warden"),
};

const world = useWorld();
let server: Server;
/** Session that starts `AGENTS`, with a turn for each test. */
let session: { id: string; cwd: string };
/** Session with Claude Code's experiment for observers and all tools in its requests. */
let equipped: string;
/** Sessions with a blocked subagent. Its summary comes after half a minute, while other tests run. */
let blocked: { silent: string; asked: string };
beforeAll(async () => {
  server = await world.server();
  const cwd = world.folder();
  const memory = memoryOf("keen", cwd);
  const skill = join(world.configFolder, "skills", "tide");
  for (const folder of [memory, skill]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(memory, "MEMORY.md"), "The harbour freezes.");
  writeFileSync(join(skill, "SKILL.md"), "---\nname: tide\ndescription: The tide.\n---\nSpeak of the tide.\n");
  writeFileSync(join(cwd, "CLAUDE.md"), "Mind the lighthouse.");
  equipped = await startEquipped();
  blocked = { silent: equipped, asked: await startBlocked([], { agentProgressSummaries: true }) };
  session = { id: (await runScript(server, ok, { cwd, advanced: { agents: AGENTS } })).sessionId, cwd };
});

const ok = [{ text: "ok" }];
const quiet = [{ text: "Quiet." }];
const look = { tools: [{ name: "Bash", input: { command: "ls" } }] };

const memoryOf = (name: string, cwd: string) => join(cwd, ".claude", "agent-memory-local", name);

/** Tool call that starts agent `name` on a script and waits for its end. */
const send = (name: string, script: Script) => ({
  name: "Agent",
  input: { description: "look", subagent_type: name, prompt: `Look. ${scriptTag(script)}`, run_in_background: false },
});

/**
 * Starts a session and blocks its last subagent: the answer to a request hangs `mid-stream`. The request for its summary is
 * answered.
 */
async function startBlocked(before: Script, advanced: object): Promise<string> {
  const blockedAnswer: Script[number] = { text: ["Reading", " the harbour map."], hang: "mid-stream", times: 1 };
  const script = [...before, { tools: [send("general-purpose", [look, blockedAnswer])] }, ...ok];
  const start = { prompt: scriptTag(script), cwd: world.folder(), advanced };
  const { sessionId } = await server.call("claude_code", start);
  await world.model.waitForRequest(
    (each) => isOfBlocked(each) && each.sessionId === sessionId && "entry" in each.served && each.served.entry === 1,
  );
  return sessionId;
}

/** True for requests of the agent blocked by `startBlocked`. */
const isOfBlocked = (request: RequestRecord) => request.subagent && request.told.includes("the harbour map.");

/** Starts a session that has run its agents and then blocks. */
async function startEquipped(): Promise<string> {
  writeFileSync(join(world.configFolder, ".claude.json"), JSON.stringify({ mcpServers: { mine: LEAST } }));
  const agents = {
    plain: agent("plain", { tools: ["Read"] }),
    rigged: agent("rigged", { tools: ["Read"], mcpServers: ["mine", "given", { own: LEAST }] }),
    watched: WATCHED,
    warden: agent("warden"),
  };
  // All tools are in the request only without `ENABLE_TOOL_SEARCH`.
  const env = { CLAUDE_CODE_EXPERIMENTAL_OBSERVER_AGENTS: "1", ENABLE_TOOL_SEARCH: "false" };
  const errands = [send("plain", quiet), send("watched", [{ text: "All is dark." }]), send("rigged", quiet)];
  const sent = errands.map((each) => ({ tools: [each] }));
  return startBlocked(sent, { agents, mcpServers: { given: LEAST }, env });
}

/** Returns requests of agent `name` to the model, after request number `after`. */
const askedBy = (name: string, sessionId: string, after = 0) =>
  world.model.requests.filter(
    (each) => each.seq > after && each.sessionId === sessionId && each.system.includes(`You are ${name}.`),
  );

const lastRequest = () => world.model.requests.at(-1)?.seq ?? 0;

/** Begins the next turn of `session`. */
const begin = async (script: Script, waitMs = 0) =>
  server.call("claude_code_reply", { sessionId: session.id, prompt: scriptTag(script), waitMs });

/** Begins the next turn; resolves with the whole log once the turn has ended or a request is open. */
async function turn(script: Script) {
  await begin(script, 40_000);
  return readWholeLog(server, session.id);
}

/** Starts agents `name` and `plain` at once, which differ only in the tested fields. */
async function sendBoth(name: keyof typeof AGENTS, script: (name: string) => Script) {
  const before = lastRequest();
  const answer = await turn([{ tools: [send("plain", script("plain")), send(name, script(name))] }, ...ok]);
  return { answer, plain: askedBy("plain", session.id, before), other: askedBy(name, session.id, before) };
}

// Names that begin with a dot are fields of an agent, because some options have equal names.
describe("an agent of the option `agents` of `claude_code`", () => {
  it("an agent is offered by its `.description`, and begins with `.skills`, `.memory`, `.effort` and `.omitClaudeMd`", async () => {
    const { plain, other } = await sendBoth("keen", () => quiet);
    const [first] = requestsOf(world, session.id);
    expect(first?.told).toContain("- plain: plain looks around.");
    expect(first?.told).toContain("- keen: Knows the sea.");
    const begins = ([request]: RequestRecord[]) => ({
      skill: request?.told.includes("Speak of the tide."),
      memory: request?.system.includes("The harbour freezes."),
      memoryFolder: request?.system.includes(memoryOf("keen", session.cwd)),
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
    expect(begins(other)).toEqual({ skill: true, memory: true, memoryFolder: true, effort: "low", claudeMd: false });
  });

  it("an agent stops after its `.maxTurns`", async () => {
    const { plain, other, answer } = await sendBoth("brief", () => [look, look, look, ...quiet]);
    expect([plain.length, other.length]).toEqual([4, 2]);
    expect(answer.result?.result).toBe("ok");
  });

  it("an agent compacts at its `.autoCompactWindow`", async () => {
    // The scripted model answers the request for a summary with the next entry too, so the text is a summary.
    const step = { ...look, text: "<summary>I saw the harbour.</summary>", usage: { input_tokens: 120_000 } };
    const { plain, other } = await sendBoth("narrow", () => [step, step, step, ...quiet]);
    const goesOn = "This session is being continued from a previous conversation";
    expect(plain).toHaveLength(4);
    expect(plain.filter((each) => each.told.includes(goesOn))).toEqual([]);
    const last = other.at(-1);
    expect(last?.told).toContain(goesOn);
    expect(last?.told).toContain("I saw the harbour.");
    expect(last?.told).not.toContain("<model-script>");
  });

  it("an agent with a looser `.permissionMode` needs fewer approvals than the session", async () => {
    const file = (name: string) => join(session.cwd, `${name}.txt`);
    const { answer } = await sendBoth("editor", (name) => [
      { tools: [{ name: "Write", input: { file_path: file(name), content: "x" } }] },
      ...quiet,
    ]);
    expect(answer.actions).toMatchObject([{ toolName: "Write", input: { file_path: file("plain") } }]);
    const end = await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId: session.id,
      requestId: answer.actions[0]?.requestId,
      decision: "deny",
      until: "end",
      waitMs: 40_000,
    });
    expect(end).toMatchObject({ result: { result: "ok" }, actions: [] });
    expect([existsSync(file("plain")), existsSync(file("editor"))]).toEqual([false, true]);
  });

  it("an agent with `.background` runs in the background even if called in the foreground", async () => {
    /**
     * Returns the result of the turn while the agent is held until the session, or the agent, has sent request `until.entry`.
     */
    const lastWords = async (name: keyof typeof AGENTS, until: { subagent: boolean; entry: number }) => {
      const gate = world.folder();
      const before = lastRequest();
      const call = { tools: [send(name, [{ gateBefore: gate, text: "Quiet." }])] };
      await begin([call, { text: "I go on." }, { text: "The scout is back." }]);
      await world.model.waitForRequest(
        ({ served, ...request }) =>
          request.seq > before &&
          request.sessionId === session.id &&
          request.subagent === until.subagent &&
          "entry" in served &&
          served.entry === until.entry,
      );
      world.model.release(gate);
      return (await server.end(session.id)).result?.result;
    };
    expect(await lastWords("plain", { subagent: true, entry: 0 })).toBe("I go on.");
    expect(await lastWords("behind", { subagent: false, entry: 1 })).toBe("The scout is back.");
  });

  it("an `.observer` watches its agent with `.observerMessage` if Claude Code's experiment is on", async () => {
    const digest = await world.model.waitForRequest(
      (request) => request.sessionId === equipped && request.system.includes("You are warden."),
    );
    expect(digest.told).toContain('You are a background observer paired with the agent "watched".');
    expect(digest.told).toContain("All is dark.");
    expect(digest.told).toContain("Think of the lighthouse.");
    expect(askedBy("warden", equipped).filter((each) => each.told.includes('the agent "plain"'))).toEqual([]);
    // `session` runs without the experiment.
    await turn([{ tools: [send("watched", [{ text: "All is dark." }])] }, ...ok]);
    expect([askedBy("watched", session.id).length, askedBy("warden", session.id).length]).toEqual([1, 0]);
  });

  it("an agent has the MCP servers that its `.mcpServers` names or defines", () => {
    const serversOf = (request?: RequestRecord) => [
      ...new Set(request?.tools.map((name) => (name.startsWith("mcp__") ? name.split("__")[1] : name))),
    ];
    const ofSession = serversOf(requestsOf(world, equipped)[0]);
    expect(ofSession).toEqual(expect.arrayContaining(["Read", "mine", "given"]));
    expect(ofSession).not.toContain("own");
    expect(serversOf(askedBy("plain", equipped)[0])).toEqual(["Read"]);
    // Claude Code looks names up only in settings files, not in `mcpServers` of the session.
    expect(serversOf(askedBy("rigged", equipped)[0])).toEqual(["Read", "mine", "own"]);
  });
});

describe("an option of `claude_code` about subagents", () => {
  it("`agentProgressSummaries` reports summaries of subagents' progress", async () => {
    const { asked, silent } = blocked;
    expect(await waitForKind(server, asked, "backgroundTask")).toEqual([
      { id: expect.any(String), status: "running", summary: "Reading the harbour map." },
    ]);
    // By now, the agent of `silent` has been blocked for as long.
    const still = await readWholeLog(server, silent);
    expect(still.status).toBe("running");
    const ended = expect.objectContaining({ status: "completed" }) as object;
    // Reports only the end of the three other agents, and nothing of the blocked one.
    expect(dataOfKind(still, "backgroundTask")).toEqual(Array(3).fill(ended));
    expect(requestsOf(world, silent, true).filter(isOfBlocked)).toHaveLength(2);
  });
});
