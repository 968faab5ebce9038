import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { confinements } from "../../src/config/confinement.ts";
import { Config } from "../../src/config/schema.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { LOCAL_CALLER, SCOPES } from "../../src/domain/principal.ts";
import { checkGiven } from "../../src/engine/policy/gate.ts";
import { OPTIONS, type TestNode, twoNodes, type World } from "../kit/step/two-nodes.ts";
import { OPEN_GATE } from "../kit/sessions/open-gate.ts";

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

describe.each(OPERATORS)("the option %s, which is reserved for the operator", (name, options) => {
  const refused = { code: "PERMISSION_DENIED", message: expect.stringContaining(`${name}: `) as string };
  const given = { ...OPTIONS, ...options };

  it("an option reserved for the operator is refused on every path to a session, and no session is created", async () => {
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

  it("an option reserved for the operator is allowed with the scope admin, and to principals that the operator names", () => {
    expect(() => checkGiven(OPEN_GATE, { ...ANN, scopes: ["admin"] }, given)).not.toThrow();
    const named = { ...OPEN_GATE, grantsOperatorOptions: (principal: string) => principal === "ann" };
    expect(() => checkGiven(named, ANN, given)).not.toThrow();
    expect(() => checkGiven(named, { ...ANN, principal: "bob" }, given)).toThrow(name);
  });
});

it("an option that is not reserved is allowed to all callers, including narrowed settings and servers by name", async () => {
  const agents = { helper: { description: "d", prompt: "p", mcpServers: ["known"] } };
  const options = { ...OPTIONS, settingSources: [], strictMcpConfig: true, allowedTools: ["Bash"], agents };
  await expect(a.engine.create(ANN, options)).resolves.toMatchObject({ sessionId: expect.any(String) as string });
});

it("a session keeps the options of the admin who started it, whichever caller of its principal prompts it", async () => {
  const options = { ...OPTIONS, env: { A: "1" } };
  const { sessionId } = await a.engine.create({ ...ANN, scopes: SCOPES }, options);
  await a.engine.prompt("ann", sessionId, { text: "go on" });
  await a.runtime.started(1);
  expect(a.runtime.lastProcess(sessionId).calls).toEqual(["push go on"]);
});

describe("a session of a principal that another server of the store does not know", () => {
  it("a server does not resume a session of an unknown principal after its owner died, even with `onLost`", async () => {
    const id = await a.open("begin", undefined, { onLost: "resume" }, "ann");
    await a.waitForEvent(id, "process.started");
    b.runtime.unknownPrincipals.add("ann");
    a.die();
    world.clock.advance(30_000);
    await b.engine.get("ann", id);
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
    expect(b.runtime.processes).toEqual([]);
    expect(b.runtime.leftovers).toHaveLength(1);
  });

  it("a server that does not know the principal of a session takes no prompt for it, and starts no process", async () => {
    const id = await a.open("begin", undefined, {}, "ann");
    a.runtime.lastProcess(id).finish();
    await a.waitForEvent(id, "turn.ended");
    b.runtime.unknownPrincipals.add("ann");
    const refused = { code: "PERMISSION_DENIED" };
    await expect(b.engine.prompt("ann", id, { text: "x" })).rejects.toMatchObject(refused);
    await expect(b.engine.fork(ANN, id, { text: "x" })).rejects.toMatchObject(refused);
    await expect(b.engine.queue("ann", id, { do: "release", by: "ann" })).rejects.toMatchObject(refused);
    await a.engine.drain();
    await expect(b.engine.control(ANN, id, { do: "usage" }, "ann")).rejects.toMatchObject(refused);
    expect(b.runtime.processes).toEqual([]);
  });
});

it("a session of another principal is unreachable by its transcript, for every use", async () => {
  const id = await a.openIdle();
  a.runtime.found.set(id, { cwd: "/repo" });
  // The transcript that `/clear` has created is unreachable too.
  const cleared = "22222222-2222-4222-8222-222222222222";
  a.runtime.found.set(cleared, { cwd: "/repo" });
  a.runtime.lastProcess(id).say({ type: "reported", transcriptId: cleared });
  await expect.poll(async () => (await a.engine.get(LOCAL_CALLER.principal, id)).state.transcriptId).toBe(cleared);
  for (const fork of [false, true]) {
    for (const sessionId of [id, cleared]) {
      const adopted = a.engine.adopt(ANN, { sessionId, fork, options: {}, prompt: { text: "x" } });
      await expect(adopted).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    }
  }
  expect(a.runtime.processes).toHaveLength(1);
});

describe("the confinement of a principal's sessions", () => {
  const ann = { scopes: ["read", "run"] as const };
  const config = (over: object) => Config.parse({ allowDirs: ["/srv"], trustDirs: ["/srv/ours"], ...over });
  const own = { allowDirs: ["/srv"], trustDirs: ["/srv/ours"], spawnWrapper: [] };

  it("sessions of the operator have the server's permissions; Claude Code's own trust counts except with HTTP", () => {
    const local = { ...own, operatorOptions: true };
    expect(confinements(config({}))("local")).toEqual({ ...local, trustsRecord: true });
    expect(confinements(config({ http: "127.0.0.1:0" }))("local")).toEqual({ ...local, trustsRecord: false });
  });

  it("a named principal has its own permissions, with the server's as default; Claude Code's own trust never counts", () => {
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

  it("an unknown principal has no permissions, unless an authorization server is configured", () => {
    const others = ["eve", "constructor", "__proto__", "toString", ""];
    const confine = confinements(config({ principals: { ann } }));
    expect(others.map((each) => confine(each))).toEqual(others.map(() => undefined));
    const known = confinements(config({ oauth: { issuer: "https://id.example.com" } }));
    for (const each of others) {
      expect(known(each)).toEqual({ ...own, trustsRecord: false, operatorOptions: false });
    }
    expect(known(LOCAL_CALLER.principal)?.operatorOptions).toBe(true);
  });
});
