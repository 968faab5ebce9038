import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { expectedRefusal } from "../kit/clients/sessions-command.ts";
import { exportedLog, TwoHomes } from "../kit/clients/two-homes.ts";
import { gitIn, repository } from "../kit/git-repository.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Sessions packed in one home and unpacked in another, with the built program. */

const world = useWorld({ agent: "stand-in", daemon: "never" });
let server: Server;
let homes: TwoHomes;
beforeAll(async () => {
  homes = new TwoHomes(world);
  server = await world.server();
});

async function begun(cwd = world.folder(), more: object = {}): Promise<string> {
  const prompt = scriptTag([{ text: "First answer." }]);
  return (await server.call("claude_code", { prompt, cwd, waitMs: 20_000, ...more })).sessionId;
}

describe("a packed session", () => {
  it("goes on in another home with log, conversation and files, and is refused a second time", async () => {
    const cwd = world.folder();
    repository(cwd, "begin");
    const options = {
      permissionMode: "acceptEdits",
      advanced: { env: { TOKEN_OF_A: "secret-of-a" }, additionalDirectories: [world.folder()] },
    };
    const sessionId = await begun(cwd, options);
    const { file, notes } = await homes.pack(sessionId);
    expect(notes).toContain("Values of env are not packed: TOKEN_OF_A.");
    expect(notes).toContain("The transcript is not masked");
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const { environment, home, run } = homes.another();
    const target = join(home, "moved");
    const { status, stderr, stdout } = await run("unpack", file, "--cwd", target);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain(`Session ${sessionId} is unpacked in ${target}.`);
    expect(stdout).toContain("other machine: additionalDirectories.");
    expect(stdout).toContain("without asking: permissionMode acceptEdits (--keep-approvals).");
    expect(stdout).toContain(
      `configuration in ${environment.CLAUDE_CONFIG_DIR}, paid by ANTHROPIC_API_KEY, as before.`,
    );
    expect(readFileSync(join(target, "a.txt"), "utf8")).toBe("changed\n");
    expect(gitIn(target)("status", "--porcelain")).toBe(" M a.txt\n");

    const [before, after] = [await exportedLog(homes.here, sessionId), await exportedLog(run, sessionId)];
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.slice(before.length).map(({ type }) => type)).toEqual(["process.exited", "notice"]);
    const two = await world.server({ env: environment });
    const prompt = scriptTag([{ text: "Second answer." }]);
    const done = await two.call("claude_code_reply", { sessionId, prompt, waitMs: 20_000 });
    expect(done).toMatchObject({ status: "idle", result: { result: "Second answer.", sessionTotalTurns: 2 } });
    expect((await run("show", sessionId)).stdout).toContain("~/moved");
    const refused = `^claude-agents-mcp: This store has session ${sessionId} already\\. .*\n$`;
    for (const each of [homes.here, run])
      expect(await each("unpack", file, "--cwd", world.folder())).toEqual(expectedRefusal(1, refused));
  });

  it("`claude_code_session` packs a session after the end of its turn", async () => {
    const cwd = world.folder();
    repository(cwd, "begin");
    const prompt = scriptTag([{ text: "Never.", gateBefore: "closed" }]);
    const { sessionId } = await server.call("claude_code", { prompt, cwd });
    expect(await homes.here("pack", sessionId)).toEqual(
      expectedRefusal(1, /A turn is running in session .* --interrupt/),
    );
    const asked = { action: "pack", sessionId };
    await expect(server.call("claude_code_session", asked)).rejects.toThrow("[SESSION_BUSY]");
    await server.call("claude_code_session", { action: "interrupt", sessionId });
    await server.call("claude_code_check", { action: "poll", sessionId, until: "end", waitMs: 20_000 });
    const answer = await server.call("claude_code_session", asked);
    const message = String(answer["message"]);
    const [, path = ""] = /^The session is packed in (.*) \(\d+ bytes\)\. /.exec(message) ?? [];
    expect(readFileSync(path).subarray(0, 28).toString()).toBe("claude-agents-mcp session 1\n");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(message).toContain("The transcript is not masked");
    const settled = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(settled).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });
  });
});
