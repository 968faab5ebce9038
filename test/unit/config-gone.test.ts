import { describe, expect, it } from "vitest";
import { constants } from "../../src/config/constants.ts";
import { ConfigError } from "../../src/config/error.ts";
import { loadConfig, unknownVariables } from "../../src/config/load.ts";
import { SETTINGS } from "../../src/config/schema.ts";

/** Settings of earlier builds, and the constants that are there instead. */

describe("a setting of an earlier build is refused with what is there instead", () => {
  it.each<[string[], Record<string, string>, string]>([
    [["--keep-ms", "1"], {}, "--keep-ms is no longer a setting: a shim keeps Claude Code for 5 minutes. Leave it out."],
    [["--no-stdio"], {}, "--no-stdio is no longer a setting: a client on stdio is served by"],
    [["--cleanup-interval-ms=1"], {}, "--cleanup-interval-ms is no longer a setting: servers clean up every minute."],
    [[], { CLAUDE_CODE_MCP_TASKS: "off" }, "CLAUDE_CODE_MCP_TASKS is no longer a setting: clients with the Tasks"],
    [["--config=/file"], {}, '"notifyEvents" in /file is no longer a setting: all events are sent'],
  ])("%j %j", (argv, env, message) => {
    const read = () => loadConfig({ argv, env, readFile: () => '{"notifyEvents":["turn.ended"]}' });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(message);
  });

  it("unless it is an empty variable, or one of the seed servers, which is logged", () => {
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
  it("have other values for tests", () => {
    expect(constants("")).toMatchObject({ keepMs: 300_000, shim: true, maxStreams: 256 });
    expect(constants('{"keepMs":5,"shim":false}')).toMatchObject({ keepMs: 5, shim: false, maxStreams: 256 });
    expect(constants(undefined).keepMs).toBe(300_000);
  });

  it.each(['{"keepMsec":1}', '{"keepMs":"1"}', "3", '{"toString":1}'])("refuse %s", (text) => {
    expect(() => constants(text)).toThrow("CLAUDE_CODE_MCP_CONSTANTS: ");
  });

  it("are no settings", () => {
    const names = Object.keys(constants(""));
    expect(SETTINGS.filter(({ key }) => names.includes(key))).toEqual([]);
  });
});
