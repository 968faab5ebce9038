import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { runScript, readWholeLog } from "../kit/sessions/one-turn.ts";
import { WITHOUT_DAEMON, type Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();
let server: Server;
/** Servers on another store: `plain` without rules, `strict` with other rules. */
let plain: Server;
let strict: Server;
let store: string[];
let auditLog: string;
beforeAll(async () => {
  store = ["--store", join(world.folder(), "store.db")];
  plain = await world.server({ args: store, env: WITHOUT_DAEMON });
  const others = ["--ask-rules", "Read,Bash,Agent,Skill", "--deny-rules", "Bash(touch:*)"];
  strict = await world.server({ args: [...store, ...others] });
  auditLog = join(world.folder(), "audit.jsonl");
  const [allow, ask, deny] = ["Bash(touch:*)", "Bash(touch asked)", "Bash(touch denied:*),Edit(secret/**)"];
  const rules = ["--allow-rules", allow, "--ask-rules", ask, "--deny-rules", deny];
  // With `IS_SANDBOX`, Claude Code lets root choose bypassPermissions.
  const env = { IS_SANDBOX: "1" };
  server = await world.server({ args: [...rules, "--audit-log", auditLog, "--allow-bypass"], env });
});

const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] });
const results = ({ events }: Answer) =>
  events.filter(({ type }) => type === "permission_result").map(({ data }) => data);

async function respond(on: Server, { actions, sessionId }: Answer, args: object): Promise<Answer> {
  const requestId = actions[0]?.requestId;
  await on.call("claude_code_check", { action: "respond_permission", sessionId, requestId, waitMs: 40_000, ...args });
  return readWholeLog(on, sessionId);
}

const Sessions = z.array(z.looseObject({ remembered: z.array(z.looseObject({ rule: z.string() })).default([]) }));

/** Returns the rules of remembered answers of a session. */
async function remembered(on: Server, sessionId: string): Promise<string[]> {
  const { sessions } = await on.call("claude_code_session", { action: "get", sessionId });
  return Sessions.parse(sessions).flatMap((session) => session.remembered.map(({ rule }) => rule));
}

it("in `dontAsk` nothing is asked: files that run commands and commands under an ask rule are denied", async () => {
  const cwd = world.folder();
  const steps = [
    write(join(cwd, "package.json")),
    write(join(cwd, ".github", "workflows", "ci.yml")),
    write(join(cwd, ".envrc")),
    bash("touch asked"),
    bash("$(echo touch) unreadable"),
  ];
  const options = { cwd, permissionMode: "dontAsk", allowedTools: ["Bash"] };
  const ended = await runScript(server, [...steps, { text: "end" }], options);
  expect(ended).toMatchObject({ status: "idle", actions: [], result: { result: "end" } });
  expect(results(ended)).toEqual([]);
  expect(readdirSync(cwd)).toEqual([]);
  expect(JSON.stringify(ended.events)).toContain("a file that can run commands, and this session does not ask");
});

describe("the operator's rules", () => {
  it("an allow rule runs a command and is named in the log, but does not allow a line of several commands", async () => {
    const cwd = world.folder();
    const done = await runScript(server, [bash("touch allowed"), { text: "end" }], { cwd });
    expect(done).toMatchObject({ status: "idle", actions: [], result: { result: "end" } });
    expect(results(done)).toMatchObject([{ decision: "allow", by: "rule", rule: "Bash(touch:*)" }]);
    expect(existsSync(join(cwd, "allowed"))).toBe(true);
    const audited = () => {
      const lines = readFileSync(auditLog, "utf8").trim().split("\n");
      const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      return entries.filter(({ sessionId, tool }) => tool === "request" && sessionId === done.sessionId);
    };
    const about = { principal: "local", toolName: "Bash", outcome: "ok" };
    await expect.poll(audited).toMatchObject([
      { ...about, action: "asked", risk: "all" },
      { ...about, action: "answered", decision: "allow", by: "rule", rule: "Bash(touch:*)" },
    ]);

    // The rules do not allow a line of several commands.
    const both = scriptTag([bash("touch a && node -e 1"), { text: "end" }]);
    await server.call("claude_code_reply", { sessionId: done.sessionId, prompt: both, waitMs: 40_000 });
    const open = await readWholeLog(server, done.sessionId);
    expect(open.actions).toMatchObject([{ toolName: "Bash", input: { command: "touch a && node -e 1" } }]);
    await server.call("claude_code_session", { action: "cancel", sessionId: done.sessionId });
  });

  it("an ask rule asks whatever else allows the command, and also if the command cannot be parsed", async () => {
    const cwd = world.folder();
    const options = { cwd, allowedTools: ["Bash", "Bash(touch:*)"], permissionMode: "acceptEdits" };
    const open = await runScript(server, [bash("touch asked"), bash("bash build.sh"), { text: "end" }], options);
    expect(open.actions).toMatchObject([{ toolName: "Bash", input: { command: "touch asked" } }]);
    const unread = await respond(server, open, { decision: "deny" });
    expect(unread.actions).toMatchObject([
      {
        toolName: "Bash",
        input: { command: "bash build.sh" },
        decisionReason: expect.stringContaining("cannot be checked against the command rules"),
      },
    ]);
    expect(await respond(server, unread, { decision: "deny" })).toMatchObject({ result: { result: "end" } });
    expect(existsSync(join(cwd, "asked"))).toBe(false);
  });

  it("a deny rule holds for a changed input: no approver can allow it", async () => {
    const cwd = world.folder();
    const { actions, sessionId } = await runScript(server, [write(join(cwd, "a")), { text: "end" }], { cwd });
    const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
    const secret = { file_path: join(cwd, "secret", "a"), content: "x" };
    const refused = await server.refusal("claude_code_check", {
      ...answer,
      permissionOptions: { updatedInput: secret },
    });
    expect(refused).toMatchObject({
      code: "PERMISSION_DENIED",
      text: expect.stringContaining("a rule of the operator denies it: Edit(secret/**)"),
    });
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a deny rule beats `allowedTools`, in permission mode bypassPermissions, acceptEdits and default", async () => {
    const cwd = world.folder();
    const files = [join(cwd, "secret", "a"), join(cwd, "denied"), join(cwd, "more")];
    const denied = [bash("touch denied"), bash("t''ouch denied"), bash("nice -n 5 /usr/bin/touch denied")];
    const script = [write(files[0]!), ...denied, bash("touch more"), { text: "end" }];
    const options = { cwd, allowedTools: ["Bash", "Write", "Edit"], permissionMode: "bypassPermissions" };
    let done = await runScript(server, script, options);
    const { sessionId } = done;
    const expectDenied = () => {
      expect(done).toMatchObject({ status: "idle", result: { result: "end" } });
      expect(files.map((file) => existsSync(file))).toEqual([false, false, true]);
    };
    expectDenied();
    for (const permissionMode of ["acceptEdits", "default"]) {
      rmSync(files[2]!);
      await server.call("claude_code_session", { action: "set_permission_mode", sessionId, permissionMode });
      await server.call("claude_code_reply", { sessionId, prompt: scriptTag(script), waitMs: 40_000 });
      done = await readWholeLog(server, sessionId);
      expectDenied();
    }
  });
});

describe("tool uses that Claude Code runs unasked in permission mode default", () => {
  const task = { description: "say", subagent_type: "general-purpose", prompt: scriptTag([{ text: "said" }]) };
  const calls = (cwd: string) => [
    { name: "Read", input: { file_path: join(cwd, "note.txt") } },
    { name: "Bash", input: { command: "cat note.txt" } },
    { name: "Bash", input: { command: "git status" } },
    { name: "Agent", input: { ...task, run_in_background: false } },
    { name: "Skill", input: { skill: "tide" } },
  ];

  async function asked(on: Server): Promise<string[]> {
    const cwd = world.folder();
    writeFileSync(join(cwd, "note.txt"), "x");
    const skill = join(world.configFolder, "skills", "tide");
    mkdirSync(skill, { recursive: true });
    writeFileSync(join(skill, "SKILL.md"), "---\nname: tide\ndescription: when the water comes\n---\nIt comes.\n");
    const script = [...calls(cwd).map((call) => ({ tools: [call] })), { text: "end" }];
    const names: string[] = [];
    let answer = await runScript(on, script, { cwd });
    while (answer.actions.length > 0) {
      names.push(...answer.actions.map(({ toolName }) => toolName));
      answer = await respond(on, answer, { decision: "deny" });
    }
    expect(answer).toMatchObject({ status: "idle", result: { result: "end" } });
    return names;
  }

  it("reads in the folder, also by commands, a subagent and a skill run without approval", async () => {
    expect(await asked(server)).toEqual([]);
    const { told: heard } = world.model.requests.at(-1) ?? {};
    expect(heard).toContain("said");
    expect(heard).toContain("It comes.");
  });

  it("reads, a subagent and a skill need approval if `--ask-rules` name them", async () => {
    expect(await asked(strict)).toEqual(["Read", "Bash", "Bash", "Agent", "Skill"]);
  });
});

describe("an answer that is remembered: `decision` allow_for_session of `claude_code_check`", () => {
  it("a remembered answer is listed with its rule, answers from then on, and is revoked by `rule` of `claude_code_session`", async () => {
    const cwd = world.folder();
    const script = [bash("touch one"), bash("touch one"), { text: "end" }];
    const open = await runScript(plain, script, { cwd });
    expect(open.actions).toMatchObject([{ toolName: "Bash" }]);
    const done = await respond(plain, open, { decision: "allow_for_session" });
    const { sessionId } = done;
    expect(done).toMatchObject({ status: "idle", actions: [], result: { result: "end" } });
    const [rule = ""] = await remembered(plain, sessionId);
    // Narrower than Claude Code's own suggestion, `touch *`.
    expect(rule).toBe("Bash(touch one)");
    expect(results(done)).toMatchObject([
      { decision: "allow_for_session", by: "caller", remembered: [rule] },
      { decision: "allow", by: "rule", rule },
    ]);

    const again = async (command = "touch one") => {
      const next = { sessionId, prompt: scriptTag([bash(command), { text: "end" }]), waitMs: 40_000 };
      await plain.call("claude_code_reply", next);
      return readWholeLog(plain, sessionId);
    };
    expect(await again()).toMatchObject({ status: "idle", actions: [] });
    const other = await again("touch two");
    expect(other).toMatchObject({ status: "waiting_permission", actions: [{ toolName: "Bash" }] });
    await respond(plain, other, { decision: "deny" });
    const unknown = { action: "revoke", sessionId, rule: "Bash(rm:*)" };
    expect(await plain.refusal("claude_code_session", unknown)).toMatchObject({ code: "INVALID_ARGUMENT" });
    const revoked = await plain.call("claude_code_session", { action: "revoke", sessionId, rule });
    expect(revoked["message"]).toContain(rule);
    expect(await remembered(plain, sessionId)).toEqual([]);
    const asked = await again();
    expect(asked).toMatchObject({ status: "waiting_permission", actions: [{ toolName: "Bash" }] });
    await plain.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a remembered answer outlives its process and its server, and a new deny rule beats it", async () => {
    const cwd = world.folder();
    const open = await runScript(plain, [bash("touch kept"), { text: "end" }], { cwd });
    const { sessionId } = await respond(plain, open, { decision: "allow_for_session" });
    await plain.close();

    const second = await world.server({ args: store, env: WITHOUT_DAEMON });
    const reply = async (on: Server, command: string) => {
      await on.call("claude_code_reply", {
        sessionId,
        prompt: scriptTag([bash(command), { text: "end" }]),
        waitMs: 40_000,
      });
      return readWholeLog(on, sessionId);
    };
    expect(await reply(second, "touch kept")).toMatchObject({ status: "idle", actions: [] });
    await second.close();

    const [rule] = await remembered(strict, sessionId);
    expect(rule).toMatch(/^Bash\(touch/);
    const denied = await reply(strict, "touch kept2");
    expect(denied).toMatchObject({ status: "idle", actions: [] });
    expect(existsSync(join(cwd, "kept2"))).toBe(false);
  });
});
