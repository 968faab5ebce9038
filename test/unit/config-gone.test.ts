import { describe, expect, it } from "vitest";
import { constants } from "../../src/config/constants.ts";
import { ConfigError } from "../../src/config/error.ts";
import { loadConfig, unknownVariables } from "../../src/config/load.ts";
import { SETTINGS } from "../../src/config/schema.ts";

/** Settings of earlier builds, and the constants that replace some of them. */

describe("settings of earlier builds", () => {
  it.each<[string[], Record<string, string>, string]>([
    [["--keep-ms", "1"], {}, "--keep-ms is no longer a setting: a shim keeps Claude Code for 5 minutes. Leave it out."],
    [["--no-stdio"], {}, "--no-stdio is no longer a setting: a client on stdio is served by"],
    [["--cleanup-interval-ms=1"], {}, "--cleanup-interval-ms is no longer a setting: servers clean up every minute."],
    [[], { CLAUDE_CODE_MCP_TASKS: "off" }, "CLAUDE_CODE_MCP_TASKS is no longer a setting: clients with the Tasks"],
    [["--config=/file"], {}, '"notifyEvents" in /file is no longer a setting: all events are sent'],
  ])("a removed setting is refused with its replacement: %j %j", (argv, env, message) => {
    const read = () => loadConfig({ argv, env, readFile: () => '{"notifyEvents":["turn.ended"]}' });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(message);
  });

  it("an empty variable of a removed setting is ignored; a predecessor's variable is ignored and reported", () => {
    const env = { CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: "5000", CLAUDE_CODE_MCP_KEEP_MS: "" };
    expect(loadConfig({ argv: [], env }).turnMaxMs).toBe(14_400_000);
    expect(unknownVariables({ CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: "5000" })).toEqual([
      expect.stringContaining(
        "CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS is not a setting of this version and has no effect.",
      ),
    ]);
  });
});

describe("constants", () => {
  it("constants have defaults that a JSON object overrides for tests", () => {
    expect(constants("")).toMatchObject({ keepMs: 300_000, shim: true, maxStreams: 256 });
    expect(constants('{"keepMs":5,"shim":false}')).toMatchObject({ keepMs: 5, shim: false, maxStreams: 256 });
    expect(constants(undefined).keepMs).toBe(300_000);
  });

  it.each(['{"keepMsec":1}', '{"keepMs":"1"}', "3", '{"toString":1}'])(
    "invalid overrides of constants are refused: %s",
    (text) => {
      expect(() => constants(text)).toThrow("CLAUDE_CODE_MCP_CONSTANTS: ");
    },
  );

  it("no constant is also a setting", () => {
    const names = Object.keys(constants(""));
    expect(SETTINGS.filter(({ key }) => names.includes(key))).toEqual([]);
  });
});
