import { expect, it } from "vitest";

import { loadConfig } from "../../src/config/load.ts";

/** Invalid settings of the webhook are refused. `test/server/webhook.test.ts` tests what the user sees then. */

const HOOK_URL = "https://example.com/hook";

it.each<[string[], string]>([
  [["--notify-url", "http://example.com/hook"], "--notify-url must be an https URL (http only on loopback)."],
  [["--notify-url", "https://me:word@example.com"], "--notify-url must not contain a user or password"],
  [["--approvals", "webhook"], "--approvals includes webhook, so --notify-url is required."],
  [["--approvals", "webhook:5000,caller", "--notify-url", HOOK_URL], "--approvals includes webhook, whose"],
  [["--notify-secret-file", "/nowhere"], "--notify-secret-file requires --notify-url"],
])("invalid webhook settings are refused: %j", (argv, beginning) => {
  let message = "";
  try {
    loadConfig({ argv, env: {}, readFile: () => "{}" });
  } catch (error) {
    message = String(error);
  }
  const refusal = `ConfigError: ${beginning}`;
  expect(message.slice(0, refusal.length)).toBe(refusal);
});

it("the error of a webhook setting names the source of the setting", () => {
  const env = { CLAUDE_CODE_MCP_APPROVALS: "webhook", CLAUDE_CODE_MCP_NOTIFY_URL: HOOK_URL };
  const problem = "CLAUDE_CODE_MCP_APPROVALS includes webhook, whose answers arrive over HTTP. Add --http,";
  expect(() => loadConfig({ argv: [], env })).toThrow(problem);
  const file = { argv: ["--config", "/c.json"], env: {}, readFile: () => '{"notifyUrl":"http://example.com"}' };
  expect(() => loadConfig(file)).toThrow('"notifyUrl" in /c.json must be an https URL');
});
