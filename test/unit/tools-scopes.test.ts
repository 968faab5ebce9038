import { describe, expect, it } from "vitest";
import { SCOPES, type Scope } from "../../src/domain/principal.ts";
import { authInfoOf } from "../../src/mcp/caller.ts";
import { resourceAnswers } from "../../src/mcp/resources/resource-answers.ts";
import { createRequestStates, UnattendedClients } from "../../src/mcp/form-state.ts";
import { toolAnswers } from "../../src/mcp/tool-answers.ts";
import type { AuditEntry } from "../../src/tools/audit.ts";
import { LIBRARY } from "../../src/mcp/resources/library.ts";
import { mayUse, requiredScope } from "../../src/tools/scope.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { tools, runTool } from "../kit/tools/run.ts";

/** Required scope of every tool and action; a new action makes the test fail until its scope is decided. */
const TABLE: Readonly<Record<string, Scope | Readonly<Record<string, Scope>>>> = {
  claude_code: "run",
  claude_code_reply: "run",
  claude_code_check: { poll: "read", respond_permission: "approve", answer_question: "approve" },
  claude_code_session: {
    list: "read",
    get: "read",
    usage: "read",
    diff: "read",
    receipt: "read",
    verify: "run",
    continue: "run",
    task_output: "read",
    cancel: "run",
    interrupt: "run",
    release_queue: "run",
    drop_queue: "run",
    close: "run",
    delete: "run",
    rename: "run",
    pack: "admin",
    set_model: "run",
    set_permission_mode: "run",
    stop_task: "run",
    rewind: "run",
    revoke: "approve",
  },
  claude_code_query: "run",
  claude_session_create: "run",
  claude_session_close: "run",
  claude_chat_query: "run",
  claude_chat_interrupt: "run",
  claude_chat_model: "run",
  claude_chat_mode: "run",
  claude_direct_query: "run",
  claude_code_configure: { get_config: "read", enable_bypass: "admin", disable_bypass: "admin" },
};

const CALLS = Object.entries(TABLE).flatMap(([name, scope]) =>
  typeof scope === "string"
    ? [{ name, action: "", args: {}, scope }]
    : Object.entries(scope).map(([action, each]) => ({ name, action, args: { action }, scope: each })),
);
const toolOf = (name: string) => tools.get(name)!;
const without = (scope: Scope) => SCOPES.filter((each) => each !== scope);

/** Fails the test on every access to the engine. */
const untouched = new Proxy(new FakeEngine(), {
  get(_, key) {
    throw new Error(`the engine was asked for ${String(key)}`);
  },
});

function audited() {
  const entries: AuditEntry[] = [];
  const bypass = { isAllowed: () => false, set: () => expect.unreachable("the gate was switched") };
  const deps = { ...depsOf(untouched), bypass, audit: (entry: AuditEntry) => void entries.push(entry) };
  return { deps, entries };
}

describe("the scope", () => {
  it("a scope is defined for every tool and every action", () => {
    const settled = [...tools.values()].map(({ name, scope }) => [name, scope]);
    expect(Object.fromEntries(settled)).toEqual(TABLE);
    const actions = [...tools.values()].flatMap((tool) => {
      const { action } = (tool.inputSchema({ maxWaitMs: 1 }) as { properties: Record<string, { enum?: string[] }> })
        .properties;
      return (action?.enum ?? [""]).map((each) => `${tool.name} ${each}`);
    });
    expect(actions.toSorted()).toEqual(CALLS.map(({ name, action }) => `${name} ${action}`).toSorted());
  });

  it.each(CALLS)(
    "the scope of $name $action is $scope, and a caller with all other scopes is refused",
    async (call) => {
      const { name, action, args, scope } = call;
      const { deps, entries } = audited();
      // The scope is checked before arguments and sessions.
      for (const raw of [args, { ...args, sessionId: "s1", prompt: "x", cwd: "/", unknown: 1 }]) {
        const reply = await runTool(toolOf(name), raw, { ...callOf(), principal: "ann", scopes: without(scope) }, deps);
        expect(reply).toMatchObject({ isError: true, structured: { code: "PERMISSION_DENIED" } });
        expect(reply.text).toMatch(new RegExp(`^Error \\[PERMISSION_DENIED\\]: ${name}.* needs the scope ${scope};`));
        expect(reply.text).toContain(without(scope).join(", "));
      }
      expect(entries).toMatchObject([
        { principal: "ann", tool: name, outcome: "PERMISSION_DENIED", ...(action !== "" && { action }) },
        { principal: "ann", tool: name, outcome: "PERMISSION_DENIED" },
      ]);
      expect(deps.faults).toEqual([]);
    },
  );

  it.each(CALLS)("the scope of $name $action is sufficient", async ({ name, args, scope }) => {
    const reply = await runTool(toolOf(name), args, { ...callOf(), scopes: [scope] }, depsOf(new FakeEngine()));
    expect(reply.structured["code"]).not.toBe("PERMISSION_DENIED");
  });

  it.each([
    ["claude_code_check", "approve"],
    ["claude_code_session", "admin"],
    ["claude_code_configure", "admin"],
    ["claude_code", "run"],
  ] as const)("the scope of an invalid call of %s is the highest of its actions: %s", (name, scope) => {
    const senseless = [undefined, null, 7, "poll", [], {}, { action: 1 }, { action: "nope" }, { action: "toString" }];
    for (const raw of [...senseless, { action: "__proto__" }, { action: ["poll"] }, { ACTION: "poll" }]) {
      expect(requiredScope(toolOf(name), raw)).toBe(scope);
    }
  });
});

describe("the caller's scopes", () => {
  /** Builds a request as received over HTTP. */
  const requestOf = (scopes: readonly Scope[]) =>
    ({
      mcpReq: { signal: new AbortController().signal },
      http: { authInfo: authInfoOf({ principal: "ann", scopes }) },
    }) as never;
  const options = (deps = depsOf(new FakeEngine())) => ({
    limits: { maxWaitMs: 45_000 },
    states: createRequestStates(async () => Promise.resolve(new Uint8Array(32))),
    unattended: new UnattendedClients({ info: () => undefined }),
    tasks: undefined,
    events: undefined,
    callerApproves: "all",
    reported: undefined,
    deps: async () => Promise.resolve(deps),
    log: { error: () => undefined, warn: () => undefined },
    toolNames: [],
    offer: async () => Promise.resolve({ tools: [], library: LIBRARY, prompts: [] }),
    following: async () => Promise.reject(new Error("nothing is followed here")),
    logs: false,
    info: { name: "test", version: "1" },
  });
  const READING = ["claude_code_check", "claude_code_session", "claude_code_configure"];

  it.each([
    [["read"], READING],
    [["approve"], ["claude_code_check", "claude_code_session"]],
    [["admin"], ["claude_code_session", "claude_code_configure"]],
    [[], []],
  ] as [Scope[], string[]][])("a caller with the scopes %j sees only the tools %j", (scopes, names) => {
    const { tools: listed } = toolAnswers(
      [...tools.values()],
      () => ({ capabilities: undefined, clientInfo: undefined, logLevel: undefined }),
      options(),
    ).list(requestOf(scopes));
    expect(listed.map(({ name }) => name)).toEqual(names);
  });

  it("a caller with all scopes sees every tool", () => {
    const all = [...tools.values()];
    expect(all.filter((tool) => mayUse({ scopes: SCOPES }, tool))).toEqual(all);
  });

  it("a caller without `read` neither lists nor reads resources, and the refusal is recorded", async () => {
    const { deps, entries } = audited();
    const answers = resourceAnswers(LIBRARY, () => ({ clientInfo: undefined }), options(deps));
    const context = requestOf(without("read"));
    expect(answers.list(context).resources).toEqual([]);
    expect(answers.listTemplates(context).resourceTemplates).toEqual([]);
    for (const uri of [
      "claude-code://sessions/s1",
      "claude-code://sessions/s1/events",
      "claude-code://options",
      "nowhere://x",
    ]) {
      await expect(answers.read({ uri }, context)).rejects.toMatchObject({
        message: expect.stringContaining("PERMISSION_DENIED"),
        data: { uri, code: "PERMISSION_DENIED" },
      });
    }
    expect(entries).toHaveLength(4);
    expect(entries[0]).toEqual({ principal: "ann", tool: "resources/read", outcome: "PERMISSION_DENIED" });
  });
});

it("a request is not delivered by a poll of a caller who may not answer requests", async () => {
  const engine = new FakeEngine();
  const session = engine.add();
  session.startTurn();
  session.openRequest({ requestId: "r1" });
  const poll = async (scopes: readonly Scope[]) =>
    runTool(
      toolOf("claude_code_check"),
      { action: "poll", sessionId: "s1", waitMs: 0 },
      { ...callOf(), scopes },
      depsOf(engine),
    );
  expect((await poll(["read"])).structured["actions"]).toMatchObject([{ requestId: "r1" }]);
  expect(engine.delivers).toEqual([]);
  await poll(["read", "approve"]);
  expect(engine.delivers).toMatchObject([[{ requestId: "r1" }]]);
});
