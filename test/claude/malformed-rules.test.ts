import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { query, type Options, type SDKUserMessage } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { AsyncQueue } from "../../src/claude/process/input.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { NO_ALLOW, RULE_TEXTS } from "../kit/attacks/malformed-rules.ts";
import { readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

/** Rules and settings files that the real Claude Code drops. */

const world = useWorld();

const Settings = z.object({
  effective: z.object({ permissions: z.record(z.string(), z.array(z.string())).optional() }),
});

interface Asked {
  getSettings: () => Promise<unknown>;
}

/** Returns the settings of a Claude Code started without a prompt. */
async function settingsWith(settings: NonNullable<Options["settings"]>): Promise<z.infer<typeof Settings>> {
  const prompt = new AsyncQueue<SDKUserMessage>();
  const env = { ...process.env, ...world.model.environment(world.configFolder), HOME: world.folder() };
  const running: ReturnType<typeof query> & Partial<Asked> = query({
    prompt,
    options: { cwd: world.folder(), env, settings },
  });
  try {
    return Settings.parse(await running.getSettings?.());
  } finally {
    prompt.end();
    running.close();
  }
}

it("the rules refused as malformed are exactly those that Claude Code drops, except correctable names", async () => {
  const deny = RULE_TEXTS.map(([text]) => text);
  const { effective } = await settingsWith({ permissions: { deny, allow: NO_ALLOW } });
  const kept = new Set(effective.permissions?.["deny"]);
  const dropped = RULE_TEXTS.filter(([text]) => !kept.has(text));
  // Claude Code drops tool names in lower case (`named`); this server corrects known names before.
  expect(dropped.map(([, kind]) => kind).filter((kind) => kind !== "drops")).toEqual(["named"]);
  expect(RULE_TEXTS.filter(([text, kind]) => kind === "drops" && kept.has(text))).toEqual([]);
  expect(effective.permissions?.["allow"] ?? []).toEqual([]);
});

/** Settings files that Claude Code ignores as a whole, and the reason in `warnings`. */
const UNREAD: readonly (readonly [text: string, says: string])[] = [
  ['{"permissions":{"deny":["Bash(touch *)"]}', "Invalid or malformed JSON"],
  ["[]", "Expected object, but received array"],
  ['{"permissions":{"deny":"Bash(touch *)"}}', "permissions.deny: Expected array"],
  ['{"model":3,"permissions":{"deny":["Bash(touch *)"]}}', "model: Expected string"],
];

describe("settings files that Claude Code cannot read", () => {
  it("an unreadable settings file is named with the reason in the answer and in the log", async () => {
    const server = await world.server();
    const file = join(world.configFolder, "settings.json");
    for (const [text, says] of UNREAD) {
      writeFileSync(file, text);
      const cwd = world.folder();
      const prompt = scriptTag([{ tools: [{ name: "Bash", input: { command: "touch made" } }] }, { text: "end" }]);
      const answer = await server.call("claude_code", { prompt, cwd, allowedTools: ["Bash"], waitMs: 40_000 });
      // Without the file, its deny rule does not hold.
      expect([text, existsSync(join(cwd, "made"))]).toEqual([text, true]);
      expect(answer["warnings"]).toEqual([expect.stringContaining(`ignores all of ${file}`)]);
      expect(JSON.stringify(answer["warnings"])).toContain(says);
      expect(JSON.stringify(await readWholeLog(server, answer.sessionId))).toContain("ignores all of");
    }
    rmSync(file);
  });

  it("tools that answer with the turn name an unreadable settings file", async () => {
    const file = join(world.configFolder, "settings.json");
    writeFileSync(file, "{");
    const server = await world.server({ args: ["--toolsets", "query,chat"] });
    for (const tool of ["claude_code_query", "claude_direct_query"]) {
      const { data } = await stream(server, tool, { prompt: scriptTag([{ text: "end" }]), cwd: world.folder() });
      expect([tool, data["warnings"]]).toEqual([tool, [expect.stringContaining(`${file}: Invalid or malformed JSON`)]]);
    }
    rmSync(file);
  });

  it("unreadable project settings are named too, but not files that do not apply to the session", async () => {
    const cwd = world.folder();
    mkdirSync(join(cwd, ".claude", "settings.local.json"), { recursive: true });
    writeFileSync(join(cwd, ".claude", "settings.json"), "{");
    const server = await world.server({ args: ["--trust-dir", cwd] });
    const prompt = scriptTag([{ text: "end" }]);
    const warnings = async (on: Server, options: object) =>
      (await on.call("claude_code", { prompt, cwd, waitMs: 40_000, ...options }))["warnings"];
    expect(await warnings(server, {})).toEqual([
      expect.stringContaining(`${join(cwd, ".claude", "settings.json")}, its deny rules`),
      expect.stringContaining("settings.local.json, its deny rules"),
    ]);
    expect(await warnings(server, { advanced: { settingSources: ["user"] } })).toBeUndefined();
    const untrusting = await world.server();
    expect(await warnings(untrusting, {})).toBeUndefined();
  });
});
