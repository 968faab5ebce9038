import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { confinements } from "../../src/config/principals/confinement.ts";
import { Config } from "../../src/config/schema.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { LOCAL_CALLER, SCOPES } from "../../src/domain/principal.ts";
import { checkGiven } from "../../src/engine/gate.ts";
import { OPTIONS, type TestNode, twoNodes, type World } from "../support/step/two-nodes.ts";
import { OPEN_GATE } from "../support/open-gate.ts";

let world: World;
let [a, b] = [] as unknown as [TestNode, TestNode];
beforeEach(() => {
  world = twoNodes();
  ({ a, b } = world);
});
afterEach(() => world.close());

const ANN = { principal: "ann", scopes: ["read", "run", "approve"] } as const;
const server = { command: "evil" };

const OPERATORS: readonly [string, Partial<SessionOptions>][] = [
  ["env", { env: {} }],
  ["env", { env: { LD_PRELOAD: "/tmp/x.so" } }],
  ["pathToClaudeCodeExecutable", { pathToClaudeCodeExecutable: "/bin/sh" }],
  ["mcpServers", { mcpServers: { server } }],
  ["sandbox", { sandbox: { enabled: false } }],
  ["debug", { debug: true }],
  ["debugFile", { debugFile: "/tmp/x" }],
  ["betas", { betas: [] }],
  ["agents.helper.mcpServers", { agents: { helper: { description: "d", prompt: "p", mcpServers: [{ server }] } } }],
  [
    "agents.second.mcpServers",
    {
      agents: {
        first: { description: "d", prompt: "p" },
        second: { description: "d", prompt: "p", mcpServers: ["known", { server }] },
      },
    },
  ],
];

describe.each(OPERATORS)("the option %s, which is for the operator", (name, options) => {
  const refused = { code: "PERMISSION_DENIED", message: expect.stringContaining(`${name}: `) as string };
  const given = { ...OPTIONS, ...options };

  it("is refused on every road to a session, and none is made", async () => {
    const prompt = { text: "x" };
    await expect(a.engine.open(ANN, { options: given, prompt })).rejects.toMatchObject(refused);
    await expect(a.engine.create(ANN, given)).rejects.toMatchObject(refused);
    for (const fork of [false, true]) {
      const sessionId = "11111111-1111-4111-8111-111111111111";
      a.runtime.found.set(sessionId, { cwd: "/repo" });
      await expect(a.engine.adopt(ANN, { sessionId, fork, options, prompt })).rejects.toMatchObject(refused);
    }
    expect(await a.engine.list({ principal: "ann", limit: 9 })).toEqual([]);
    expect(a.runtime.processes).toEqual([]);
  });

  it("is for a caller with the scope admin, and for whom the operator names", () => {
    expect(() => checkGiven(OPEN_GATE, { ...ANN, scopes: ["admin"] }, given)).not.toThrow();
    const named = { ...OPEN_GATE, grantsOperatorOptions: (principal: string) => principal === "ann" };
    expect(() => checkGiven(named, ANN, given)).not.toThrow();
    expect(() => checkGiven(named, { ...ANN, principal: "bob" }, given)).toThrow(name);
  });
});

it("everything else is for everybody, settings that are narrowed and servers by name included", async () => {
  const agents = { helper: { description: "d", prompt: "p", mcpServers: ["known"] } };
  const options = { ...OPTIONS, settingSources: [], strictMcpConfig: true, allowedTools: ["Bash"], agents };
  await expect(a.engine.create(ANN, options)).resolves.toMatchObject({ sessionId: expect.any(String) as string });
});

it("a session goes on with what an admin has started it with, whoever of its principal prompts it", async () => {
  const options = { ...OPTIONS, env: { A: "1" } };
  const { sessionId } = await a.engine.create({ ...ANN, scopes: SCOPES }, options);
  await a.engine.prompt("ann", sessionId, { text: "go on" });
  await a.runtime.started(1);
  expect(a.runtime.of(sessionId).calls).toEqual(["push go on"]);
});

describe("a session of somebody whom another server of the store does not know", () => {
  it("is not run on there when its server has died, though it was to be", async () => {
    const id = await a.open("begin", undefined, { onLost: "resume" }, "ann");
    await a.seen(id, "process.started");
    b.runtime.unknown.add("ann");
    a.die();
    world.clock.advance(30_000);
    await b.engine.get("ann", id);
    expect(await b.seen(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
    expect(b.runtime.processes).toEqual([]);
    expect(b.runtime.leftovers).toHaveLength(1);
  });

  it("takes no prompt there, and starts nothing for what is asked of it", async () => {
    const id = await a.open("begin", undefined, {}, "ann");
    a.runtime.of(id).finish();
    await a.seen(id, "turn.ended");
    b.runtime.unknown.add("ann");
    const refused = { code: "PERMISSION_DENIED" };
    await expect(b.engine.prompt("ann", id, { text: "x" })).rejects.toMatchObject(refused);
    await expect(b.engine.fork(ANN, id, { text: "x" })).rejects.toMatchObject(refused);
    await expect(b.engine.queue("ann", id, { do: "release", by: "ann" })).rejects.toMatchObject(refused);
    await a.engine.drain();
    await expect(b.engine.control(ANN, id, { do: "usage" }, "ann")).rejects.toMatchObject(refused);
    expect(b.runtime.processes).toEqual([]);
  });
});

it("a session of another is not to be had by its transcript, whatever is to become of it", async () => {
  const id = await a.open();
  a.runtime.of(id).finish();
  await a.seen(id, "turn.ended");
  a.runtime.found.set(id, { cwd: "/repo" });
  // Nor by the one that a /clear has given it.
  const cleared = "22222222-2222-4222-8222-222222222222";
  a.runtime.found.set(cleared, { cwd: "/repo" });
  a.runtime.of(id).say({ type: "reported", transcriptId: cleared });
  await expect.poll(async () => (await a.engine.get(LOCAL_CALLER.principal, id)).state.transcriptId).toBe(cleared);
  for (const fork of [false, true]) {
    for (const sessionId of [id, cleared]) {
      const adopted = a.engine.adopt(ANN, { sessionId, fork, options: {}, prompt: { text: "x" } });
      await expect(adopted).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    }
  }
  expect(a.runtime.processes).toHaveLength(1);
});

describe("what sessions may use", () => {
  const ann = { scopes: ["read", "run"] as const };
  const config = (over: object) => Config.parse({ allowDirs: ["/srv"], trustDirs: ["/srv/ours"], ...over });
  const own = { allowDirs: ["/srv"], trustDirs: ["/srv/ours"], spawnWrapper: [] };

  it("is all of the server for its operator, whose own trust counts unless he serves others", () => {
    const local = { ...own, operatorOptions: true };
    expect(confinements(config({}))("local")).toEqual({ ...local, trustsRecord: true });
    expect(confinements(config({ http: "127.0.0.1:0" }))("local")).toEqual({ ...local, trustsRecord: false });
  });

  it("is what stands under a name, and of the server where nothing does; trust is never Claude Code's own", () => {
    const terms = {
      allowDirs: ["/home/bob"],
      trustDirs: [],
      claudeConfigDir: "/home/bob/.claude",
      spawnWrapper: ["sudo", "-u", "bob"],
      operatorOptions: true,
    };
    const confine = confinements(config({ principals: { ann, bob: { ...ann, ...terms } } }));
    expect(confine("ann")).toEqual({ ...own, trustsRecord: false, operatorOptions: false });
    const { claudeConfigDir: configDir, ...same } = terms;
    expect(confine("bob")).toEqual({ ...same, configDir, trustsRecord: false });
  });

  it("is nothing for anybody else, but where an authorization server knows them", () => {
    const others = ["eve", "constructor", "__proto__", "toString", ""];
    const confine = confinements(config({ principals: { ann } }));
    expect(others.map((each) => confine(each))).toEqual(others.map(() => undefined));
    const known = confinements(config({ oauthIssuer: "https://id.example.com" }));
    for (const each of others) {
      expect(known(each)).toEqual({ ...own, trustsRecord: false, operatorOptions: false });
    }
    expect(known(LOCAL_CALLER.principal)?.operatorOptions).toBe(true);
  });
});
