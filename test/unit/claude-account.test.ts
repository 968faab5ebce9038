import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeEach, expect, it } from "vitest";

import { readAccount, readPayer } from "../../src/claude/account.ts";
import { isSameIdentity } from "../../src/domain/process.ts";

/** The account that pays for a process, by variables and files. */

const root = mkdtempSync(join(tmpdir(), "ccm-account-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(root, "config-"))));

const SECRET = "sk-ant-oat01-secret";
const account = async (variables: Record<string, string> = {}) =>
  readAccount({ CLAUDE_CONFIG_DIR: folder, ...variables });
const write = (name: string, content: unknown) =>
  writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
const LOGIN = "the Claude login of the configuration folder";

it.each([
  ["nobody has logged in", undefined],
  ["the file is not JSON", "{"],
  ["the account has no id", { oauthAccount: { accountUuid: 7 } }],
  ["the file has another form", { oauthAccount: "x", env: 1 }],
])("the account of a login is the configuration folder if %s", async (_, state) => {
  if (state !== undefined) write(".claude.json", state);
  const expected = { id: `folder:${folder}`, paidBy: LOGIN, configFolder: folder, hasWindows: true };
  expect(await account()).toEqual(expected);
});

it("the account of a login is its uuid, also after another login in the same folder", async () => {
  write(".claude.json", { oauthAccount: { accountUuid: "uuid-1" } });
  expect(await account()).toEqual({ id: "account:uuid-1", paidBy: LOGIN, configFolder: folder, hasWindows: true });
  write(".claude.json", { oauthAccount: { accountUuid: "uuid-2" } });
  utimesSync(join(folder, ".claude.json"), 1, 1);
  expect((await account()).id).toBe("account:uuid-2");
});

it("a login that pays by use has no windows", async () => {
  write(".claude.json", { oauthAccount: { accountUuid: "uuid-1" }, primaryApiKey: SECRET });
  expect(await account()).toMatchObject({ id: "account:uuid-1", hasWindows: false });
});

it.each<[string, Record<string, string>, string, boolean]>([
  ["a token", { CLAUDE_CODE_OAUTH_TOKEN: SECRET }, "CLAUDE_CODE_OAUTH_TOKEN", true],
  ["a key", { ANTHROPIC_API_KEY: SECRET, CLAUDE_CODE_OAUTH_TOKEN: "other" }, "ANTHROPIC_API_KEY", false],
  ["a token of a gateway", { ANTHROPIC_AUTH_TOKEN: SECRET, ANTHROPIC_API_KEY: "k" }, "ANTHROPIC_AUTH_TOKEN", false],
  ["a cloud", { CLAUDE_CODE_USE_BEDROCK: "1", AWS_SECRET_ACCESS_KEY: SECRET }, "Amazon Bedrock", false],
  ["a cloud without a name", { CLAUDE_CODE_USE_MANTLE: "1", SECRET }, "CLAUDE_CODE_USE_MANTLE", false],
])("the account of %s has an id that does not contain the credential", async (_, variables, paidBy, hasWindows) => {
  write(".claude.json", { oauthAccount: { accountUuid: "uuid-1" } });
  const found = await account(variables);
  expect(found).toMatchObject({ paidBy, hasWindows, configFolder: folder });
  expect(found.id).toMatch(/^[A-Z_]+:[0-9a-f]{32}$/);
  expect(JSON.stringify(found)).not.toContain("secret");
  expect(await account(variables)).toEqual(found);
});

it("two tokens are two accounts, whatever the folder", async () => {
  const [one, other] = [
    await account({ CLAUDE_CODE_OAUTH_TOKEN: "a" }),
    await account({ CLAUDE_CODE_OAUTH_TOKEN: "b" }),
  ];
  expect(one.id).not.toBe(other.id);
  folder = mkdtempSync(join(root, "config-"));
  expect((await account({ CLAUDE_CODE_OAUTH_TOKEN: "a" })).id).toBe(one.id);
});

it("variables in the user's settings replace those of the process", async () => {
  write("settings.json", { env: { ANTHROPIC_API_KEY: SECRET, ODD: 7 } });
  expect(await account({ CLAUDE_CODE_OAUTH_TOKEN: "t" })).toMatchObject({
    paidBy: "ANTHROPIC_API_KEY",
    hasWindows: false,
  });
  expect(await account({ ANTHROPIC_API_KEY: "other" })).toEqual(await account());
});

it.each<[string, Record<string, string>, string]>([
  ["a login", {}, "apiKeyHelper"],
  ["a token", { CLAUDE_CODE_OAUTH_TOKEN: "t" }, "apiKeyHelper"],
  ["a key", { ANTHROPIC_API_KEY: "k" }, "ANTHROPIC_API_KEY"],
])("with `apiKeyHelper` in the settings and %s, the first of both pays: %j, %s", async (_, variables, paidBy) => {
  write("settings.json", { apiKeyHelper: "get-key" });
  expect(await account(variables)).toMatchObject({ paidBy, hasWindows: false });
});

/** Returns the identity of a process at another node, with a configuration folder of its own. */
async function identityAt(node: string, variables: Record<string, string>, files: Record<string, unknown> = {}) {
  folder = mkdtempSync(join(root, "config-"));
  for (const [name, content] of Object.entries(files)) write(name, content);
  const payer = await readPayer({ CLAUDE_CONFIG_DIR: folder, ...variables });
  expect(JSON.stringify(payer)).not.toContain(root);
  expect(JSON.stringify(payer)).not.toContain("secret");
  return { configFolder: folder, paidBy: payer.kind, payer, node };
}

type Side = [variables: Record<string, string>, files?: Record<string, unknown>];
const loggedIn = (accountUuid: string): Side => [{}, { ".claude.json": { oauthAccount: { accountUuid } } }];
const withHelper = (apiKeyHelper: string): Side => [{}, { "settings.json": { apiKeyHelper } }];
const BEDROCK = { CLAUDE_CODE_USE_BEDROCK: "1", AWS_REGION: "x" };
const ROLE = { ...BEDROCK, AWS_SESSION_TOKEN: SECRET };
const VERTEX = { CLAUDE_CODE_USE_VERTEX: "1", ANTHROPIC_VERTEX_PROJECT_ID: "p" };

it.each<[string, Side, Side]>([
  ["one login", loggedIn("uuid-1"), loggedIn("uuid-1")],
  ["logins of which one names no account", loggedIn("uuid-1"), [{}]],
  ["one key", [{ ANTHROPIC_API_KEY: SECRET }], [{ ANTHROPIC_API_KEY: SECRET, CLAUDE_CODE_OAUTH_TOKEN: "other" }]],
  ["helpers in different places", withHelper("/home/ann/key"), withHelper("/srv/key")],
  ["roles with different keys", [{ ...ROLE, AWS_ACCESS_KEY_ID: "a" }], [{ ...ROLE, AWS_ACCESS_KEY_ID: "b" }]],
  [
    "one project, credentials in different files",
    [{ ...VERTEX, GOOGLE_APPLICATION_CREDENTIALS: "/home/ann/key" }],
    [{ ...VERTEX, GOOGLE_APPLICATION_CREDENTIALS: "/srv/key" }],
  ],
])("a session goes on at another node with %s", async (_, one, other) => {
  expect(isSameIdentity(await identityAt("a", ...one), await identityAt("b", ...other))).toBe(true);
});

it.each<[string, Side, Side]>([
  ["two logins", loggedIn("uuid-1"), loggedIn("uuid-2")],
  ["two tokens", [{ CLAUDE_CODE_OAUTH_TOKEN: "a" }], [{ CLAUDE_CODE_OAUTH_TOKEN: "b" }]],
  ["a login and a key", loggedIn("uuid-1"), [{ ANTHROPIC_API_KEY: SECRET }]],
  ["a login and a helper", loggedIn("uuid-1"), withHelper("get-key")],
  ["two projects", [VERTEX], [{ ...VERTEX, ANTHROPIC_VERTEX_PROJECT_ID: "q" }]],
  ["two static keys", [{ ...BEDROCK, AWS_ACCESS_KEY_ID: "a" }], [{ ...BEDROCK, AWS_ACCESS_KEY_ID: "b" }]],
  ["two clouds", [BEDROCK], [{ CLAUDE_CODE_USE_ANTHROPIC_AWS: "1" }]],
])("a session does not go on at another node with %s", async (_, one, other) => {
  expect(isSameIdentity(await identityAt("a", ...one), await identityAt("b", ...other))).toBe(false);
});

it("at one node, another configuration folder is another identity, and another key is not", async () => {
  const [one, other] = [
    await identityAt("a", { ANTHROPIC_API_KEY: "a" }),
    await identityAt("a", { ANTHROPIC_API_KEY: "b" }),
  ];
  expect(isSameIdentity(one, { ...other, configFolder: one.configFolder })).toBe(true);
  expect(isSameIdentity(one, { ...one, configFolder: other.configFolder })).toBe(false);
});
