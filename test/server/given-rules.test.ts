import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { runScript, readWholeLog } from "../kit/sessions/one-turn.ts";
import { WITHOUT_DAEMON, type Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Malformed rules of callers, which Claude Code would drop. All texts: `test/unit/malformed-rules.test.ts`. */

const world = useWorld();
const UNKNOWN = "00000000-0000-4000-8000-000000000000";
let server: Server;
let store: string;
beforeAll(async () => {
  store = join(world.folder(), "store.db");
  const args = ["--toolsets", "all", "--allow-disk-resume", "--store", store, "--deny-rules", "Read(secret/**)"];
  server = await world.server({ args, env: WITHOUT_DAEMON });
});

/** Creates a folder with a file under the rule `Read(secret/**)`, and a script that reads the file. */
function withSecret(name: string) {
  const cwd = join(world.folder(), name);
  mkdirSync(join(cwd, "secret"), { recursive: true });
  writeFileSync(join(cwd, "secret", "a"), "TOP-SECRET");
  const read = { name: "Read", input: { file_path: join(cwd, "secret", "a") } };
  return { cwd, script: [{ tools: [read] }, { text: "end" }] };
}

describe("malformed rules of a caller", () => {
  const agents = (rules: object) => ({ a: { description: "x", prompt: "x", ...rules } });
  const start = (args: object): [string, Record<string, unknown>] => ["claude_code", { prompt: "x", ...args }];
  const adopt = { sessionId: UNKNOWN, prompt: "x" };
  const cases: [field: string, tool: string, args: Record<string, unknown>][] = [
    ["disallowedTools.1", ...start({ disallowedTools: ["Read", "Bash(touch *"] })],
    ["disallowedTools.0", ...start({ disallowedTools: ["Bash[touch *]"] })],
    ["allowedTools.0", ...start({ allowedTools: ["Bash(ls *)x"] })],
    ["agents.a.disallowedTools.0", ...start({ advanced: { agents: agents({ disallowedTools: ["Bash(x"] }) } })],
    ["agents.a.tools.0", ...start({ agents: agents({ tools: ["Bash(x"] }) })],
    ["disallowedTools.0", "claude_code_query", { prompt: "x", disallowedTools: ["Bash(touch *"] }],
    ["allowedTools.0", "claude_code_query", { prompt: "x", allowedTools: ["Bash(touch *"] }],
    ["disallowedTools.0", "claude_code_reply", { ...adopt, diskResumeConfig: { disallowedTools: ["Bash(touch *"] } }],
  ];
  it.each(cases)("a malformed rule in %s of %s is INVALID_ARGUMENT", async (field, tool, args) => {
    const { code, text } = await server.refusal(tool, args);
    expect([code, text]).toEqual(["INVALID_ARGUMENT", expect.stringContaining(`${field}: the rule Bash`)]);
    expect(text).toContain("Write Tool or Tool(content)");
  });

  it("an answer that adds a malformed rule is INVALID_ARGUMENT, and the request stays open", async () => {
    const cwd = world.folder();
    const script = [{ tools: [{ name: "Bash", input: { command: "touch made" } }] }, { text: "end" }];
    const { actions, sessionId } = await runScript(server, script, { cwd });
    const rules = [{ toolName: "Bash(touch", ruleContent: "*" }];
    const updatedPermissions = [{ type: "addRules", behavior: "deny", rules }];
    const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
    const refused = await server.refusal("claude_code_check", { ...answer, permissionOptions: { updatedPermissions } });
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(refused.text).toContain("updatedPermissions.0.rules: the rule for Bash(touch has no valid tool name");
    expect(await readWholeLog(server, sessionId)).toMatchObject({ status: "waiting_permission" });
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a malformed rule of a stored session causes a warning, and the operator's rules still hold", async () => {
    const { cwd, script } = withSecret("plain");
    const begun = await runScript(server, [{ text: "end" }], { cwd, disallowedTools: ["Bash(zzz *)"] });
    const database = await openDatabase(store);
    database.exec(`UPDATE descriptions SET spec = replace(spec, 'Bash(zzz *)', 'Bash(zzz *')`);
    database.close();
    await server.close();
    server = await world.server({ args: ["--store", store, "--deny-rules", "Read(secret/**)"], env: WITHOUT_DAEMON });
    const reply = { sessionId: begun.sessionId, prompt: scriptTag(script), waitMs: 40_000 };
    const answer = await server.call("claude_code_reply", reply);
    expect(answer["warnings"]).toEqual([
      expect.stringMatching(
        /^disallowedTools\.0: the rule Bash\(zzz \* has a bracket without its other half.+ not apply/,
      ),
    ]);
    expect(JSON.stringify(world.model.requests)).not.toContain("TOP-SECRET");
    expect(JSON.stringify(await readWholeLog(server, begun.sessionId))).toContain("denied by your permission settings");
  });
});

it("a rule of the operator holds in a folder whose name contains brackets and commas", async () => {
  const { cwd, script } = withSecret("a) b, (c");
  const ended = await runScript(server, script, { cwd });
  expect(JSON.stringify(ended.events)).toContain("denied by your permission settings");
  expect(JSON.stringify(ended.events)).not.toContain("TOP-SECRET");
});
