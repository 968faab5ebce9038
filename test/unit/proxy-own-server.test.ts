import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reasonForOwnServer, storeFlags } from "../../src/proxy/own-server.ts";

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "ccm-own-"));
  writeFileSync(join(root, "off.json"), '{"daemon": "off"}');
  writeFileSync(join(root, "memory.json"), '{"store": "memory:"}');
  writeFileSync(join(root, "http.json"), '{"http": true}');
  writeFileSync(join(root, "broken.json"), "{");
});
afterAll(() => rmSync(root, { recursive: true }));

const start = { argv: [] as string[], env: {} as Record<string, string>, pid: process.pid, platform: "linux" as const };

describe("a client gets a server of its own", () => {
  it.each<[string, Partial<Parameters<typeof reasonForOwnServer>[0]>]>([
    ["--daemon off", { argv: ["--daemon", "off"] }],
    ["--daemon off", { argv: ["--daemon=auto", "--daemon=off"] }],
    ["--daemon off", { env: { CLAUDE_CODE_MCP_DAEMON: "off" } }],
    ["--daemon off", { platform: "win32" }],
    ["HTTP", { argv: ["--http"] }],
    ["HTTP", { argv: ["--http", "127.0.0.1:0"] }],
    ["HTTP", { env: { CLAUDE_CODE_MCP_HTTP: "1" } }],
    ["memory", { argv: ["--store", "memory:"] }],
    ["memory", { env: { CLAUDE_CODE_MCP_STORE: "memory:" } }],
    ["session", { env: { CLAUDE_CODE_MCP_DEPTH: "1" } }],
    ["container", { pid: 1 }],
    ["CODEX_SANDBOX", { env: { CODEX_SANDBOX: "seatbelt" } }],
  ])("a client gets a server of its own because of %s: %j", (reason, given) => {
    expect(reasonForOwnServer({ ...start, ...given })).toContain(reason);
  });

  it.each([
    ["--daemon off", "off.json"],
    ["memory", "memory.json"],
    ["HTTP", "http.json"],
  ])("a client gets a server of its own because of %s in %s", (reason, file) => {
    expect(reasonForOwnServer({ ...start, argv: ["--config", join(root, file)] })).toContain(reason);
    expect(reasonForOwnServer({ ...start, env: { CLAUDE_CODE_MCP_CONFIG: join(root, file) } })).toContain(reason);
  });
});

it.each<[string, Partial<Parameters<typeof reasonForOwnServer>[0]>]>([
  ["by default", {}],
  ["a flag over the file", { argv: ["--config", "off.json", "--daemon", "auto"] }],
  ["a flag over a variable", { argv: ["--daemon", "auto"], env: { CLAUDE_CODE_MCP_DAEMON: "off" } }],
  ["HTTP is switched off", { env: { CLAUDE_CODE_MCP_HTTP: "0", CLAUDE_CODE_MCP_STORE: "/s.db" } }],
  ["the file is broken: the server says so", { argv: ["--config", "broken.json"] }],
])("a client is served by a daemon: %s", (_, { argv = [], ...given }) => {
  const paths = argv.map((word) => (word.endsWith(".json") ? join(root, word) : word));
  expect(reasonForOwnServer({ ...start, ...given, argv: paths })).toBeUndefined();
});

it("the daemon of a client gets its store and the password file: a database as written, files as absolute paths", () => {
  writeFileSync(
    join(root, "database.json"),
    JSON.stringify({ store: "postgres://h/d", storePasswordFile: "password" }),
  );
  const config = { argv: ["--config", join(root, "database.json")], env: start.env };
  const password = join(root, "password");
  expect(storeFlags(config)).toEqual(["--store", "postgres://h/d", "--store-password-file", password]);
  const flags = storeFlags({ ...config, argv: [...config.argv, "--store=s.db", "--store-password-file", "p"] });
  expect(flags).toEqual(["--store", join(process.cwd(), "s.db"), "--store-password-file", join(process.cwd(), "p")]);
  expect(reasonForOwnServer({ ...start, ...config })).toBeUndefined();
});
