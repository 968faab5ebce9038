import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { bundledClaudes } from "../../src/claude/claude-files.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Commands in the text of a skill (`!` lines), run by Claude Code itself, under the operator's rules. */

const world = useWorld({ daemon: "never" });
const RULES = ["--deny-rules", "Bash(touch denied*)", "--ask-rules", "Bash(touch asked*)"];
let server: Server;
beforeAll(async () => {
  server = await world.server({ args: RULES });
});

let skills = 0;

/** Adds a user's skill that runs `command` and allows Bash. */
function skillWith(command: string): string {
  const name = `make-${String((skills += 1))}`;
  const folder = join(world.configFolder, "skills", name);
  mkdirSync(folder, { recursive: true });
  const head = `---\nname: ${name}\ndescription: d\nallowed-tools: Bash\n---\n`;
  writeFileSync(join(folder, "SKILL.md"), `${head}State: !\`${command}\`\n`);
  return name;
}

/** Starts a session with skill `name`, used by the caller or the model. */
async function startWithSkill(name: string, how: "caller" | "model", options: object = {}) {
  const cwd = world.folder();
  const steps = [{ tools: [{ name: "Skill", input: { skill: name } }] }, { text: "Used." }];
  const prompt = how === "caller" ? `/${name} ${scriptTag([{ text: "Used." }])}` : scriptTag(steps);
  const given = { prompt, cwd, allowedTools: ["Skill"], ...options };
  const { sessionId } = await server.call("claude_code", given);
  return { sessionId, made: (file: string) => existsSync(join(cwd, file)) };
}

const UNREADABLE = "sh -c 'touch spelled'";

describe.each(["caller", "model"] as const)("a command of a skill that the %s uses", (how) => {
  it("a command of a skill runs if no rule names it", async () => {
    const { made, sessionId } = await startWithSkill(skillWith("touch free"), how);
    expect((await server.end(sessionId)).result).toMatchObject({ result: "Used.", isError: false });
    expect(made("free")).toBe(true);
  });

  it.each([
    [
      "a rule denies it",
      {
        command: "find . -maxdepth 0 -exec touch denied ';'",
        file: "denied",
        options: {},
        why: /The command rule Bash\(touch denied\*\) decides/,
      },
    ],
    [
      "it cannot be read and the session does not ask",
      { command: UNREADABLE, file: "spelled", options: { permissionMode: "dontAsk" }, why: /cannot be checked/ },
    ],
  ])("a command of a skill does not run if %s, and the skill says why", async (_, { command, file, options, why }) => {
    const { made, sessionId } = await startWithSkill(skillWith(command), how, options);
    const { actions, result } = await server.end(sessionId);
    expect(result?.result).toBe("Used.");
    expect(actions).toEqual([]);
    expect(why.test(world.transcript(sessionId))).toBe(true);
    expect(made(file)).toBe(false);
  });

  it.each([
    ["a rule asks for it", "find . -maxdepth 0 -exec touch asked ';'", "asked"],
    ["it cannot be read", UNREADABLE, "spelled"],
  ])(
    "a command of a skill becomes a request if %s; it runs if allowed, and not if denied",
    async (_, command, file) => {
      const name = skillWith(command);
      for (const decision of ["allow", "deny"]) {
        const { made, sessionId } = await startWithSkill(name, how);
        const { actions, nextCursor } = await server.news(sessionId);
        expect(actions).toMatchObject([
          { toolName: "Bash", input: { command }, decisionReason: expect.stringContaining(`/${name}`) },
        ]);
        expect(made(file)).toBe(false);
        const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision };
        await server.call("claude_code_check", answer);
        expect((await server.end(sessionId, nextCursor)).result).toMatchObject({ result: "Used.", isError: false });
        expect(made(file)).toBe(decision === "allow");
      }
    },
  );
});

it("Claude Code itself refuses a skill's command that an ask rule matches literally, because it cannot ask there", async () => {
  const { made, sessionId } = await startWithSkill(skillWith("touch asked"), "caller");
  const { actions, result } = await server.end(sessionId);
  expect(actions).toEqual([]);
  expect(result?.result).toContain("Shell command permission check failed");
  expect(made("asked")).toBe(false);
});

it("a Claude Code without the hook runs no command of a skill while command rules exist", async () => {
  const older = join(world.folder(), "claude");
  const real = bundledClaudes()[0] ?? "claude";
  writeFileSync(
    older,
    `#!/bin/sh\n[ "$1" = --version ] && echo '2.1.331 (Claude Code)' && exit\nexec '${real}' "$@"\n`,
  );
  chmodSync(older, 0o755);
  const cwd = world.folder();
  const under = await world.server({ args: [...RULES, "--claude-path", older] });
  const prompt = `/${skillWith("touch free")} ${scriptTag([{ text: "Used." }])}`;
  await under.call("claude_code", { prompt, cwd, waitMs: 40_000 });
  expect(existsSync(join(cwd, "free"))).toBe(false);
});
