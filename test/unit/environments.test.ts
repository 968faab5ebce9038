import { randomBytes } from "node:crypto";
import { getEventListeners } from "node:events";
import { expect, it, vi } from "vitest";
import { withClaudePath } from "../../src/domain/client-environment.ts";
import { EnvironmentRecords, type Variables } from "../../src/claude/environment-records.ts";

const key = randomBytes(32);
const variables = { PATH: "/one", MY_KEY: "secret-of-one" };

it("clients that differ only in where they were started share one record", () => {
  const environments = new EnvironmentRecords(key, { HOME: "/home/me", UNSET: undefined });
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
  // A restart keeps the ids of records; another `key` does not.
  expect(new EnvironmentRecords(key, {}).open(variables).id).toBe(editor.id);
  expect(new EnvironmentRecords(randomBytes(32), {}).open(variables).id).not.toBe(editor.id);
});

it("a record is kept while a client or one of the last 200 sessions uses it", () => {
  const environments = new EnvironmentRecords(key, {});
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

it("the record of a session at work is kept, however many sessions come after it", () => {
  const environments = new EnvironmentRecords(key, {});
  const atWork = new Set(["waits", ...Array.from({ length: 250 }, (_, n) => String(n))]);
  environments.keepWhile((sessionId) => atWork.has(sessionId));
  const client = environments.open(variables);
  environments.hold("waits", client.id);
  client.close();
  for (const sessionId of atWork) environments.hold(sessionId, client.id);
  const late = environments.open({ PATH: "/two" });
  environments.hold("not at work yet", late.id);
  late.close();
  expect([client, late].map(({ id }) => environments.get(id))).toEqual([variables, { PATH: "/two" }]);
  // Once the work is over, the surplus goes with the next session.
  atWork.clear();
  for (let count = 0; count < 200; count += 1) environments.hold(`later ${String(count)}`, "");
  expect([client, late].map(({ id }) => environments.get(id))).toEqual([undefined, undefined]);
});

it("all records that a session has used are kept", () => {
  const environments = new EnvironmentRecords(key, {});
  const [one, two] = [environments.open(variables), environments.open({ PATH: "/two" })];
  for (const { id } of [one, two, one]) environments.hold("session", id);
  one.close();
  two.close();
  expect(environments.get(one.id)).toEqual(variables);
  expect(environments.get(two.id)).toEqual({ PATH: "/two" });
});

it("`learn` is called with the variables to mask when a record opens and when a session holds it", () => {
  const learn = vi.fn<(variables: Variables, sessionId?: string) => void>();
  const environments = new EnvironmentRecords(key, { OWN_KEY: "secret-of-the-server" }, { learn });
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

it("the record of a process that a former server left serves only the session of the process", async () => {
  const environments = new EnvironmentRecords(key, {}, { isApart: true });
  const id = environments.recovered("session", variables);
  expect(environments.get(id)).toEqual(variables);
  expect(environments.recovered("other", variables)).not.toBe(id);
  // A second process of the session, with another environment.
  expect(environments.recovered("session", { PATH: "/later" })).toBe(id);
  expect(environments.get(id)).toEqual({ PATH: "/later" });
  // The record does not count as a connected client.
  expect(await environments.find(() => true, 0)).toBeUndefined();
});

it("the record of a connected client is found, also if the client connects in time", async () => {
  const environments = new EnvironmentRecords(key, { PATH: "/one" }, { isApart: true });
  const isOne = ({ PATH }: Variables) => PATH === "/one";
  const coming = environments.find(isOne, 60_000);
  environments.open({ PATH: "/two" });
  const client = environments.open(variables);
  expect(await coming).toBe(client.id);
  expect(await environments.find(isOne, 0)).toBe(client.id);
  environments.hold("session", client.id);
  client.close();
  expect(await environments.find(isOne, 0)).toBeUndefined();
  // Without `isApart`, the server's own record belongs to the client that started the server.
  expect(await new EnvironmentRecords(key, { PATH: "/one" }).find(isOne, 0)).toBe("");
});

it("a client that connects ends all waits that its record fits, of any length, and a cancelled wait leaves nothing", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  const environments = new EnvironmentRecords(key, {}, { isApart: true });
  const isOne = ({ PATH }: Variables) => PATH === "/one";
  const cancelling = new AbortController();
  const waits = [Infinity, Number.MAX_SAFE_INTEGER, 60_000].map((ms) => environments.find(isOne, ms));
  const cancelled = environments.find(() => expect.fail("asked after its end"), Infinity, cancelling.signal);
  const failed = environments.find(() => {
    throw new Error("unknown principal");
  }, Infinity);
  const stays = environments.find(() => false, Infinity, cancelling.signal);
  expect(getEventListeners(cancelling.signal, "abort")).toHaveLength(2);
  await new Promise(setImmediate);
  cancelling.abort();
  expect(await Promise.all([cancelled, stays])).toEqual([undefined, undefined]);
  expect(getEventListeners(cancelling.signal, "abort")).toEqual([]);
  const { id } = environments.open(variables);
  expect(await Promise.all(waits)).toEqual([id, id, id]);
  await expect(failed).rejects.toThrow("unknown principal");
  expect(await environments.find(() => false, Infinity, AbortSignal.abort())).toBeUndefined();
  process.off("warning", note);
  expect(warnings).toEqual([]);
});

it("`paysAnew` is true for the first use of another credential in a session", () => {
  const environments = new EnvironmentRecords(key, {});
  const pays = (sessionId: string, value: string) => environments.paysAnew(sessionId, { ANTHROPIC_API_KEY: value });
  expect([pays("one", "a"), pays("one", "a"), pays("two", "b"), pays("one", "b"), pays("one", "b")]).toEqual([
    false,
    false,
    false,
    true,
    false,
  ]);
});
