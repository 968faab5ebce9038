import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { WITHOUT_DAEMON, type Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();
/** What the server refuses before Claude Code learns of it. */
const standIn = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await standIn.server();
});

const say = (text: string): string => `${text}? ${scriptTag([{ text }])}`;

describe("a tool use or prompt that runs unasked", () => {
  it("is not chosen by the user's own settings: without `permissionMode` everything asks", async () => {
    const settings = join(world.configFolder, "settings.json");
    writeFileSync(settings, JSON.stringify({ permissions: { defaultMode: "acceptEdits" } }));
    const own = await world.server();
    const cwd = world.folder();
    const write = { name: "Write", input: { file_path: join(cwd, "a.txt"), content: "x" } };
    const { sessionId } = await own.call("claude_code", { prompt: scriptTag([{ tools: [write] }]), cwd });
    const asked = await own.news(sessionId);
    expect(asked.actions).toMatchObject([{ toolName: "Write" }]);
    await own.call("claude_code_session", { action: "cancel", sessionId });
    rmSync(settings);
  });

  it("is not released by a server that would refuse it: a held prompt of a session in bypassPermissions", async () => {
    const open = await standIn.server({ args: ["--allow-bypass"], env: { ...WITHOUT_DAEMON, IS_SANDBOX: "1" } });
    const never = scriptTag([{ gateBefore: `never-${standIn.folder()}`, text: "x" }]);
    const options = { cwd: standIn.folder(), permissionMode: "bypassPermissions" };
    const { sessionId } = await open.call("claude_code", { prompt: never, ...options });
    await standIn.model.waitForRequest((request) => request.sessionId === sessionId);
    await open.call("claude_code_reply", { sessionId, prompt: say("later"), whenBusy: "queue" });
    process.kill(open.pid, "SIGKILL");
    await open.gone;

    for (const action of ["release_queue", "usage"]) {
      const refused = await server.refusal("claude_code_session", { action, sessionId });
      expect(refused).toMatchObject({ code: "PERMISSION_DENIED" });
    }
    expect(JSON.stringify(standIn.model.requests)).not.toContain("later?");
  });

  it("is never a command of Claude Code's own that writes settings, in a prompt or for an agent", async () => {
    const cwd = standIn.folder();
    const { sessionId } = await server.call("claude_code", { prompt: say("one"), cwd, waitMs: 40_000 });
    const prompt = "/config permissionMode=acceptEdits";
    const agents = { scout: { description: "looks", prompt: "Look.", initialPrompt: prompt } };
    const refused = {
      code: "PERMISSION_DENIED",
      text: expect.stringContaining("/config is a Claude Code command") as string,
    };
    expect(await server.refusal("claude_code", { prompt, cwd })).toMatchObject(refused);
    expect(await server.refusal("claude_code", { prompt: say("x"), cwd, advanced: { agents } })).toMatchObject(refused);
    expect(await server.refusal("claude_code_reply", { sessionId, prompt })).toMatchObject(refused);
    expect(existsSync(join(standIn.configFolder, "settings.json"))).toBe(false);
  });

  it("is never a command of a repository whose changes are shown, nor anything outside the folder", async () => {
    const repository = standIn.folder();
    const cwd = join(repository, "inside");
    const marker = join(repository, "was-run");
    mkdirSync(cwd);
    const git = (...args: string[]) => execFileSync("git", ["-C", repository, ...args], { env: AUTHOR });
    writeFileSync(join(cwd, "a.txt"), "one\n");
    writeFileSync(join(repository, "outside.txt"), "one\n");
    git("init", "-q");
    git("add", ".");
    git("commit", "-qm", "begin");
    writeFileSync(join(repository, ".git", "info", "attributes"), "* filter=evil\n");
    git("config", "filter.evil.clean", `touch ${marker}; cat`);
    writeFileSync(join(cwd, "a.txt"), "two\n");
    writeFileSync(join(repository, "outside.txt"), "two\n");
    utimesSync(join(cwd, "a.txt"), 1, 1);

    const { sessionId } = await server.call("claude_code", { prompt: say("one"), cwd, waitMs: 40_000 });
    const told = JSON.stringify(await server.call("claude_code_session", { action: "diff", sessionId }));
    expect(told).toContain("+two");
    expect(told).not.toContain("outside.txt");
    expect(existsSync(marker)).toBe(false);
    // The command is one that git would have run.
    git("diff", "HEAD");
    expect(existsSync(marker)).toBe(true);
  });
});

const AUTHOR = {
  PATH: process.env["PATH"] ?? "",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example.org",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@example.org",
  GIT_CONFIG_GLOBAL: "/dev/null",
};
