import { randomBytes } from "node:crypto";
import { expect, it, vi } from "vitest";
import { withClaudePath } from "../../src/domain/client-environment.ts";
import { Environments, type Variables } from "../../src/claude/environments.ts";

const key = randomBytes(32);
const variables = { PATH: "/one", MY_KEY: "secret-of-one" };

it("has one record for clients that differ only in where they were started", () => {
  const environments = new Environments(key, { HOME: "/home/me", UNSET: undefined });
  const settings = { CLAUDE_CODE_MCP_ALLOW_BYPASS: "1", CLAUDE_CODE_DEFAULT_CWD: "/here" };
  const editor = environments.open({
    ...variables,
    ...settings,
    VSCODE_PID: "1",
    TERM: "xterm",
    npm_config_cache: "/c",
  });
  const terminal = environments.open({ MY_KEY: "secret-of-one", PATH: "/one", SSH_TTY: "/dev/pts/1" });
  const other = environments.open({ ...variables, PATH: "/two" });
  const named = environments.open(withClaudePath(variables, "/opt/claude"));
  expect(terminal.id).toBe(editor.id);
  expect(environments.get(named.id)).toEqual({ ...variables, CLAUDE_CODE_MCP_CLAUDE_PATH: "/opt/claude" });
  expect(other.id).not.toBe(editor.id);
  expect(environments.get(editor.id)).toEqual(variables);
  expect(environments.get("")).toEqual({ HOME: "/home/me" });
  expect(environments.get("of no client")).toBeUndefined();
  // After a restart as well, and under another key not.
  expect(new Environments(key, {}).open(variables).id).toBe(editor.id);
  expect(new Environments(randomBytes(32), {}).open(variables).id).not.toBe(editor.id);
});

it("keeps a record while a client or one of the last 200 sessions has it", () => {
  const environments = new Environments(key, {});
  const [first, second] = [environments.open(variables), environments.open(variables)];
  const { id } = first;
  first.close();
  first.close();
  expect(environments.get(id)).toEqual(variables);
  environments.hold("session", id);
  second.close();
  expect(environments.get(id)).toEqual(variables);
  for (let count = 0; count < 199; count += 1) environments.hold(String(count), "");
  expect(environments.get(id)).toEqual(variables);
  environments.hold("one more", "");
  expect(environments.get(id)).toBeUndefined();
});

it("keeps all records that a session has had to do with", () => {
  const environments = new Environments(key, {});
  const [one, two] = [environments.open(variables), environments.open({ PATH: "/two" })];
  for (const { id } of [one, two, one]) environments.hold("session", id);
  one.close();
  two.close();
  expect(environments.get(one.id)).toEqual(variables);
  expect(environments.get(two.id)).toEqual({ PATH: "/two" });
});

it("tells what is to be masked before it gives a record away, and for which session", () => {
  const learn = vi.fn<(variables: Variables, sessionId?: string) => void>();
  const environments = new Environments(key, { OWN_KEY: "secret-of-the-server" }, { learn });
  const { id } = environments.open({ ...variables, CLAUDE_CODE_MCP_RESUME_SECRET: "secret-of-a-setting" });
  expect(learn.mock.calls).toEqual([[{ ...variables, CLAUDE_CODE_MCP_RESUME_SECRET: "secret-of-a-setting" }]]);
  learn.mockClear();
  environments.hold("session", id, { ADDED_KEY: "secret-of-the-call" });
  environments.hold("other", "");
  environments.hold("none", "of no client");
  expect(learn.mock.calls).toEqual([
    [{ ...variables, ADDED_KEY: "secret-of-the-call" }, "session"],
    [{}, "other"],
  ]);
});

it("has the record of a process that a former server has left for its session alone", async () => {
  const environments = new Environments(key, {}, { isApart: true });
  const id = environments.recovered("session", variables);
  expect(environments.get(id)).toEqual(variables);
  expect(environments.recovered("other", variables)).not.toBe(id);
  // A second process of the session, with another environment.
  expect(environments.recovered("session", { PATH: "/later" })).toBe(id);
  expect(environments.get(id)).toEqual({ PATH: "/later" });
  // It is no client that is there.
  expect(await environments.find(() => true, 0)).toBeUndefined();
});

it("finds the record of a client that is connected, or comes in time", async () => {
  const environments = new Environments(key, { PATH: "/one" }, { isApart: true });
  const isOne = ({ PATH }: Variables) => PATH === "/one";
  const coming = environments.find(isOne, 60_000);
  environments.open({ PATH: "/two" });
  const client = environments.open(variables);
  expect(await coming).toBe(client.id);
  expect(await environments.find(isOne, 0)).toBe(client.id);
  environments.hold("session", client.id);
  client.close();
  expect(await environments.find(isOne, 0)).toBeUndefined();
  // Where the server serves the client that has started it, its record is that client's.
  expect(await new Environments(key, { PATH: "/one" }).find(isOne, 0)).toBe("");
});

it("tells that another credential pays for a session, and keeps none", () => {
  const environments = new Environments(key, {});
  const pays = (sessionId: string, value: string) => environments.paysAnew(sessionId, { ANTHROPIC_API_KEY: value });
  expect([pays("one", "a"), pays("one", "a"), pays("two", "b"), pays("one", "b"), pays("one", "b")]).toEqual([
    false,
    false,
    false,
    true,
    false,
  ]);
});
