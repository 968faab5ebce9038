import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { WITHOUT_DAEMON, type Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();
/** Stand-in for Claude Code: enough for refusals, which the server makes by itself. */
const standIn = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await standIn.server();
});

const say = (text: string): string => `${text}? ${scriptTag([{ text }])}`;

describe("tool uses and prompts that run without approval", () => {
  it("the user's own settings do not choose the mode: without `permissionMode` a write asks", async () => {
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

  it("a server without --allow-bypass releases no held prompt of a bypassPermissions session, nor starts one for its usage", async () => {
    const open = await standIn.server({ args: ["--allow-bypass"], env: { ...WITHOUT_DAEMON, IS_SANDBOX: "1" } });
    const never = scriptTag([{ gateBefore: `never-${standIn.folder()}`, text: "x" }]);
    const options = { cwd: standIn.folder(), permissionMode: "bypassPermissions" };
    const { sessionId } = await open.call("claude_code", { prompt: never, ...options });
    await standIn.model.waitForRequest((request) => request.sessionId === sessionId);
    await open.call("claude_code_reply", { sessionId, prompt: say("later"), whenBusy: "queue" });
    process.kill(open.pid, "SIGKILL");
    await open.gone;

    const refused = await server.refusal("claude_code_session", { action: "release_queue", sessionId });
    expect(refused).toMatchObject({ code: "PERMISSION_DENIED" });
    const { usage } = await server.call("claude_code_session", { action: "usage", sessionId });
    expect(usage).toMatchObject({ contextUnknown: expect.stringContaining("--allow-bypass") as string });
    expect(JSON.stringify(standIn.model.requests)).not.toContain("later?");
  });

  it("a Claude Code command that writes settings is refused, as a prompt and as an agent's first prompt", async () => {
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

  it("the diff of a session runs no filter command of the repository, and shows nothing outside the folder", async () => {
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
    // Control: `git diff` alone does run the command.
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

it.each(["node", "labels"])(
  "on a store of one machine, `node` and `labels` of `claude_code` are refused: %s",
  async (field) => {
    const advanced = { [field]: field === "node" ? "gpu" : { zone: "lab" } };
    const refused = await server.refusal("claude_code", { prompt: say("one"), cwd: standIn.folder(), advanced });
    const text = expect.stringMatching(new RegExp(` ${field}: .*--store postgres://`)) as string;
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", text });
  },
);
