import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { serverSettings } from "../../src/config/server-settings.ts";
import { readSettings } from "../../src/proxy/known-settings.ts";
import { StaticAnswers } from "../../src/proxy/static-answers.ts";
import { initialize, modern, STATIC_FILE } from "../kit/clients/opening-lines.ts";

/** A proxy reads settings without schemas as its daemon does, or leaves every answer to the daemon. */

const folder = mkdtempSync(join(tmpdir(), "ccm-settings-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Settings {
  readonly argv: string[];
  readonly env: Record<string, string>;
}

let files = 0;

/** Writes a file of settings with `text`, and returns the flag for the file. */
function file(text: unknown): string[] {
  const path = join(folder, `${String((files += 1))}.json`);
  writeFileSync(path, typeof text === "string" ? text : JSON.stringify(text));
  return ["--config", path];
}

/** Writes a user's file with `content`, and returns the variable that leads to the file. */
function userFile(content: unknown): Record<string, string> {
  const home = join(folder, String((files += 1)));
  mkdirSync(join(home, "claude-agents-mcp"), { recursive: true });
  writeFileSync(join(home, "claude-agents-mcp", "config.json"), JSON.stringify(content));
  return { XDG_CONFIG_HOME: home };
}

const answersOf = (settings: Settings) => new StaticAnswers(settings, () => STATIC_FILE);
const flags = (...argv: string[]): Settings => ({ argv, env: {} });
const variables = (env: Record<string, string>): Settings => ({ argv: [], env });

describe("settings with which a proxy leaves every answer to its daemon", () => {
  it.each<[string, Settings]>([
    ["dynamic descriptions", flags("--dynamic-description")],
    ["an unknown flag", flags("--alow-dir", "/x")],
    ["an argument that is not a flag", flags("x")],
    ["a flag without its value", flags("--toolsets")],
    ["a flag in place of a value", flags("--toolsets", "--store")],
    ["a value of a negated flag", flags("--no-allow-bypass=true")],
    ["an unknown toolset", flags("--toolsets", "agent,none")],
    ["no toolset", flags("--toolsets=")],
    ["no tool", flags("--toolsets", "query", "--query", '{"enabled":false}')],
    ["a number out of its range", flags("--max-live", "0")],
    ["an invalid number of a variable", variables({ CLAUDE_CODE_MCP_MAX_LIVE: "x" })],
    ["an empty list of folders", variables({ CLAUDE_CODE_MCP_ALLOW_DIRS: "" })],
    ["an invalid switch", flags("--allow-bypass=yes")],
    ["rules", flags("--deny-rules", "Bash(rm *)")],
    ["an approver that has settings", flags("--approvals", "webhook")],
    ["an approver that is named twice", flags("--approvals", "console,console:0")],
    ["settings of an approver", flags("--notify-url", "https://example.com")],
    ["a required sandbox", flags("--sandbox", "required")],
    ["a default folder that is missing", variables({ CLAUDE_CODE_DEFAULT_CWD: "/none" })],
    ["an unknown kind of store", flags("--store", "postgres://host/db")],
    ["a missing file", flags("--config", "/none.json")],
    ["a file that is not JSON", flags(...file("{"))],
    ["a file without an object", flags(...file([]))],
    ["an unknown key of a file", flags(...file({ toolset: ["agent"] }))],
    ["a value of another type in a file", flags(...file({ maxLive: "3" }))],
    ["a setting of an earlier build", variables({ CLAUDE_CODE_MCP_KEEP_MS: "1" })],
    ["an unknown key of the user's file", variables(userFile({ toolset: ["agent"] }))],
    ["bounds of the user's file", variables(userFile({ bounds: { toolsets: ["query"] } }))],
  ])("a proxy leaves every answer to its daemon with %s", (_, settings) => {
    expect(answersOf(settings).answerTo(initialize())).toBeUndefined();
    expect(answersOf(settings).answerTo(modern("server/discover"))).toBeUndefined();
  });
});

const texts = [
  "1",
  "true",
  "x",
  "",
  "3",
  "agent",
  "a,b",
  "/x",
  "Bash(a, b)",
  "auto",
  "memory:",
  "-1",
  "caller",
  "~/x",
  "info",
  '{"enabled":false,"maxTurns":3}',
  '{"cwd":"~/x","model":"a"}',
  '{"maxBytes":1}',
];
const options = STATIC_FILE.settings.flatMap(({ flag = "x" }) => [`--${flag}`, `--no-${flag}`]);
const word = fc.oneof(fc.constantFrom(...options), fc.constantFrom(...texts));
const inline = fc
  .tuple(fc.constantFrom(...options), fc.constantFrom(...texts))
  .map(([flag, text]) => `${flag}=${text}`);
const variable = fc.constantFrom(...STATIC_FILE.settings.map((each) => each.variable));
const values = fc.oneof(
  fc.constantFrom(...texts),
  fc.constantFrom(true, false, 3, null),
  fc.constant(["agent"]),
  fc.constant({ cwd: "x", allowedTools: ["Read"] }),
  fc.constant({ maxMessages: "3" }),
  fc.constant([]),
);
const keys = fc.constantFrom(...STATIC_FILE.settings.map(({ key }) => key));

it("settings read without schemas equal those that the server reads", () => {
  let read = 0;
  const isSame = (argv: string[], env: Record<string, string>) => {
    const known = readSettings(STATIC_FILE.settings, { argv, env });
    if (!known) return;
    const config = new Map<string, unknown>(Object.entries(serverSettings({ argv, env }).config));
    const shown = [...known].filter(([key]) => key !== "config" && key !== "store");
    const valueOf = (key: string): unknown => {
      const [outer = "", inner] = key.split(".");
      const value = config.get(outer);
      return inner === undefined ? value : Reflect.get(value as object, inner);
    };
    expect(shown).toEqual(shown.map(([key]) => [key, valueOf(key)]));
    read += 1;
  };
  const environment = fc.dictionary(variable, fc.constantFrom(...texts), { maxKeys: 2 });
  const argument = fc.array(fc.oneof(word, inline), { maxLength: 3 });
  fc.assert(fc.property(argument, environment, isSame), { numRuns: 2_000 });
  const content = fc.dictionary(keys, values, { maxKeys: 2 });
  fc.assert(
    fc.property(content, content, (given, users) => isSame(file(given), userFile(users))),
    { numRuns: 300 },
  );
  expect(read).toBeGreaterThan(100);
});
