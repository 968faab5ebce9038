import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { readWholeLog } from "../kit/sessions/one-turn.ts";
import { toolCalls } from "../kit/people/fake-user.ts";
import { WITHOUT_DAEMON } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Two servers with different settings on a store: a session keeps its policy, within the limits of the next server. */

const world = useWorld({ agent: "stand-in" });

const deed = (cwd: string, name: string) => ({ name: "Bash", input: { command: `touch ${join(cwd, name)}` } });
const reads = { name: "Bash", input: { command: "cat never" } };

it("a session keeps its rules, approval chain, gate and folders at a server that has none of them", async () => {
  const cwd = world.folder();
  const outside = world.folder();
  const strict = [
    "--deny-rules",
    "Bash(touch *),Read(secret.txt)",
    "--ask-rules",
    "Bash(cat *)",
    "--caller-approves",
    "reads",
  ];
  const args = [...strict, "--approvals", "user,caller", "--allow-dir", cwd];
  const first = await world.server({ args, env: WITHOUT_DAEMON });
  const { sessionId } = await first.call("claude_code", { prompt: scriptTag([{ text: "hi" }]), cwd, waitMs: 40_000 });
  process.kill(first.pid, "SIGKILL");
  await first.gone;

  const loose = ["--allow-bypass", "--allow-rules", "Bash(touch *),Bash(cat *)", "--approvals", "caller"];
  const second = await world.server({ args: loose, env: { IS_SANDBOX: "1" } });
  const set = { action: "set_permission_mode", sessionId };
  for (const permissionMode of ["bypassPermissions", "acceptEdits"]) {
    const refused = await second.refusal("claude_code_session", { ...set, permissionMode });
    expect(refused.code).toBe("PERMISSION_DENIED");
  }
  // `touch` is denied by the rule, `cat` because no remaining approver may allow `cat`.
  writeFileSync(join(cwd, "secret.txt"), "open sesame");
  const look = { name: "Read", input: { file_path: join(cwd, "secret.txt") } };
  const prompt = toolCalls([deed(cwd, "by-rule"), look, reads]);
  await second.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
  expect(existsSync(join(cwd, "by-rule"))).toBe(false);
  const { events } = await readWholeLog(second, sessionId);
  const answers = events.filter(({ type }) => type === "permission_result").map(({ data }) => data["decision"]);
  expect(answers).not.toContain("allow");
  expect(JSON.stringify(events)).toContain("reads, --caller-approves");
  // Claude Code has the rules as well: a read in its folder makes no request.
  expect(JSON.stringify(world.model.requests)).not.toContain("open sesame");
  const attachments = [{ path: join(outside, "image.png") }];
  const refused = await second.refusal("claude_code_reply", { sessionId, prompt: "look", attachments });
  expect(refused.text).toContain("outside the folders");

  // A fork inherits the policy of its original.
  const copied = toolCalls([deed(cwd, "by-the-copy")]);
  const fork = { sessionId, prompt: copied, forkSession: true, waitMs: 40_000 };
  const copy = await second.call("claude_code_reply", fork);
  expect(copy.sessionId).not.toBe(sessionId);
  expect(existsSync(join(cwd, "by-the-copy"))).toBe(false);

  // A session of `second` has the policy of `second`.
  const own = toolCalls([deed(outside, "own")]);
  await second.call("claude_code", { prompt: own, cwd: outside, waitMs: 40_000 });
  expect(existsSync(join(outside, "own"))).toBe(true);
});

it("a caller with the scope read triggers no takeover from a dead server; a server's own check does", async () => {
  const store = ["--store", join(world.folder(), "store.db")];
  const may = namedUsers({ eve: { scopes: ["read", "run", "approve"] } });
  const mayRead = namedUsers({ eve: { scopes: ["read", "approve"] } });
  const env = constants({ cleanupIntervalMs: 3_600_000 });
  const first = await world.http({ args: [...store, ...may.args], env });
  const second = await world.http({ args: [...store, ...mayRead.args], env });
  const working = await first.connect("modern", may.tokens.eve);
  const prompt = scriptTag([{ gateBefore: "never of these", text: "x" }]);
  const { sessionId } = await working.call("claude_code", { prompt, cwd: world.folder(), onLost: "resume" });
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  first.signal("SIGKILL");
  await first.exited;
  const asked = world.model.requests.length;

  const reading = await second.connect("modern", mayRead.tokens.eve);
  const poll = { action: "poll", sessionId, cursor: 1, waitMs: 2_500 };
  const end = async () => (await reading.call("claude_code_check", { ...poll, waitMs: 0 })).nextCursor;
  const before = await end();
  expect(before).toBeGreaterThan(1);
  await reading.call("claude_code_session", { action: "get", sessionId });
  await reading.call("claude_code_session", { action: "list" });
  for (const part of ["", "/events"])
    await reading.client.readResource({ uri: `claude-code://sessions/${sessionId}${part}` });
  await reading.call("claude_code_check", { ...poll, until: "end", cursor: before });
  const answer = { action: "respond_permission", sessionId, requestId: "r", decision: "deny", waitMs: 0 };
  expect((await reading.refusal("claude_code_check", answer)).code).toBe("SESSION_BUSY");
  expect(await end()).toBe(before);
  expect(world.model.requests).toHaveLength(asked);

  // `third` checks for abandoned sessions once at its start.
  const third = await world.http({ args: [...store, ...may.args], env });
  await world.model.waitForRequest((request) => request.sessionId === sessionId && world.model.requests.length > asked);
  const whole = await readWholeLog(await third.connect("modern", may.tokens.eve), sessionId);
  expect(JSON.stringify(whole.events)).toContain("lost");
});
