import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { waitForRequest, writing } from "../kit/faults/driving.ts";
import { canHang, hang, type HungFolder } from "../kit/faults/hung-folder.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/**
 * A folder that never answers, like a mount of a dead server: only its client gets an error, and the daemon serves all others.
 */

const world = useWorld({ agent: "stand-in" });
const hung: HungFolder[] = [];
afterEach(() => hung.splice(0).forEach((each) => each.release()));

const prompt = scriptTag([{ text: "done" }]);
const done = { status: "idle", result: { result: "done" } };
const start = async (client: Server, cwd: string) => client.call("claude_code", { prompt, cwd, waitMs: 40_000 });
const reply = async (client: Server, sessionId: string) =>
  client.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
const refusal = async (client: Server, cwd: string) => client.refusal("claude_code", { prompt, cwd });
const unanswered = (path: string) => ({
  code: "TIMEOUT",
  text: expect.stringContaining(`${path} has not answered within 5 s`) as string,
});

/** Waits for a single daemon, because a child of the daemon looks like the daemon for a moment. */
async function oneDaemon(): Promise<number[]> {
  let daemons: number[] = [];
  await expect.poll(() => (daemons = world.daemons())).toHaveLength(1);
  return daemons;
}

describe.runIf(canHang())("a folder that does not answer", () => {
  it("a hung folder blocks no other folder, by however many names it is requested", async () => {
    const [mount, elsewhere] = [world.folder(), world.folder()];
    // Hung before the daemon starts, because the daemon reads the mounts once a second.
    hung.push(hang(mount));
    const [one, other] = [await world.shared(), await world.shared()];
    const projects = Array.from({ length: 12 }, (_, index) => join(mount, `project-${String(index)}`));
    const refused = await Promise.all(projects.map(async (cwd) => refusal(one, cwd)));
    expect(refused.map(({ text }) => text.replace(/\/project-\d+/, ""))).toEqual(
      projects.map(() => expect.stringContaining(`cwd: ${mount} has not answered within 5 s`) as string),
    );
    // Only the first two accesses name their folders, because later ones name the mount. With Node's default of four threads,
    // only a single access would be made.
    expect(refused.filter(({ text }) => text.includes("/project-"))).toHaveLength(2);
    expect(await start(other, elsewhere)).toMatchObject(done);
    await Promise.all([one.close(), other.close()]);
  });

  it("a hung folder fails only calls that name it, while other clients are served", async () => {
    const [one, other] = [await world.shared(), await world.shared()];
    const [cwd, elsewhere] = [world.folder(), world.folder()];
    const { sessionId } = await start(one, cwd);
    const { sessionId: others } = await start(other, elsewhere);
    const [daemon] = await oneDaemon();
    hung.push(hang(cwd));
    const first = refusal(one, cwd);
    expect(await start(other, elsewhere)).toMatchObject(done);
    expect(await reply(other, others)).toMatchObject(done);
    expect(await first).toEqual(unanswered(`cwd: ${cwd}`));
    expect(await refusal(one, join(cwd, "below"))).toEqual(unanswered(`cwd: ${cwd}`));
    expect(await one.refusal("claude_code_reply", { sessionId, prompt })).toEqual(unanswered(`cwd: ${cwd}`));
    for (const [field, given] of [
      ["additionalDirectories[0]: ", { advanced: { additionalDirectories: [cwd] } }],
      ["attachments[0].path: ", { attachments: [{ path: join(cwd, "picture.png") }] }],
      ["debugFile: ", { advanced: { debugFile: join(cwd, "debug.txt") } }],
      ["pathToClaudeCodeExecutable: ", { advanced: { pathToClaudeCodeExecutable: join(cwd, "claude") } }],
    ] as const) {
      const refused = await one.refusal("claude_code", { prompt, cwd: elsewhere, ...given });
      expect(refused).toEqual(unanswered(`${field}${cwd}`));
    }
    const env = { CLAUDE_CONFIG_DIR: join(cwd, "config") };
    const { result } = await one.call("claude_code", { prompt, cwd: elsewhere, advanced: { env }, waitMs: 40_000 });
    expect(result).toMatchObject({ errorSubtype: "start_failed", result: unanswered(cwd).text });
    expect(await start(one, elsewhere)).toMatchObject(done);
    hung.pop()?.release();
    // The first access ends when the folder is released.
    await expect.poll(async () => start(one, cwd).catch(String)).toMatchObject(done);
    expect(await oneDaemon()).toEqual([daemon]);
    await Promise.all([one.close(), other.close()]);
  });

  it("a hung folder blocks a Claude Code that works in it, which can still be ended", async () => {
    const [one, other] = [await world.shared(), await world.shared()];
    const cwd = world.folder();
    const { sessionId } = await one.call("claude_code", { prompt: writing(join(cwd, "a.txt")), cwd });
    const { actions } = await waitForRequest(one, sessionId);
    hung.push(hang(cwd));
    const answer = { action: "respond_permission", sessionId, requestId: actions[0]!.requestId };
    await one.call("claude_code_check", { ...answer, decision: "allow", waitMs: 0 });
    const processes = () => world.processes().filter(({ command }) => command.includes(sessionId));
    expect(processes()).toHaveLength(1);
    expect(await start(other, world.folder())).toMatchObject(done);
    await one.call("claude_code_session", { action: "cancel", sessionId });
    await expect.poll(processes).toEqual([]);
    expect(await start(other, world.folder())).toMatchObject(done);
    await Promise.all([one.close(), other.close()]);
  });

  it("a hung configuration folder fails only its client's calls, even in a daemon with Node's default number of threads", async () => {
    const daemon = await world.daemon();
    const home = world.folder();
    hung.push(hang(home));
    const folder = join(home, ".claude");
    const PATH = `${join(home, "bin")}:${process.env["PATH"] ?? ""}`;
    const one = await daemon.client({ env: { CLAUDE_CONFIG_DIR: folder, PATH } });
    const other = await daemon.client();
    const [first, second] = await Promise.all([one, other].map(async (client) => start(client, world.folder())));
    expect(first?.result).toMatchObject({ errorSubtype: "start_failed", result: unanswered(folder).text });
    expect(second).toMatchObject(done);
    expect(await start(other, world.folder())).toMatchObject(done);
    await daemon.close();
  });

  it("a hung folder does not keep a daemon from ending", async () => {
    const client = await world.shared();
    const cwd = world.folder();
    await start(client, world.folder());
    hung.push(hang(cwd));
    await refusal(client, cwd);
    const [pid = 0] = world.daemons();
    process.kill(pid, "SIGTERM");
    await expect.poll(() => world.daemons()).not.toContain(pid);
    await client.close();
  });
});
