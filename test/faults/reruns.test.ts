import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { afterEach, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";
import { allowRequest, BACK_PROMPT, killAll, waitForRequest, writing } from "../kit/faults/driving.ts";
import { expectUsable } from "../kit/faults/watcher.ts";

const world = useWorld();
// Closed after each test, because an idle process would count as a leftover of the next test.
afterEach(async () => world.closeServers());

describe("permission requests that are open at the death of a server", () => {
  it("an open request is closed in the log, and the session accepts replies", async () => {
    const server = await world.server();
    const cwd = world.folder();
    const { sessionId } = await server.call("claude_code", { prompt: writing(join(cwd, "a.txt")), cwd });
    const asked = await server.news(sessionId);
    process.kill(server.pid, "SIGKILL");
    await server.gone;

    const next = await world.server();
    const after = await next.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(after).toMatchObject({ status: "error", actions: [], result: { errorSubtype: "lost" } });
    const answers = after.events.filter(({ type }) => type === "permission_result");
    expect(answers).toMatchObject([{ data: { requestId: asked.actions[0]?.requestId, by: "withdrawn" } }]);
    await expectUsable(next, sessionId, BACK_PROMPT);
    expect(existsSync(join(cwd, "a.txt"))).toBe(false);
  });

  it("with onLost resume, an open request is asked again, and the turn continues after the finished steps", async () => {
    const server = await world.server();
    const cwd = world.folder();
    const file = join(cwd, "a.txt");
    const script = scriptTag([
      { tools: [{ name: "Bash", input: { command: "echo once >> ran.txt" } }] },
      { tools: [{ name: "Write", input: { file_path: file, content: "hello" } }] },
      { text: "Written after all." },
      { text: "Written after all." },
    ]);
    const { sessionId } = await server.call("claude_code", {
      prompt: script,
      cwd,
      allowedTools: ["Bash"],
      advanced: { onLost: "resume" },
    });
    await waitForRequest(server, sessionId);
    // Claude Code writes its transcript with some delay.
    await expect.poll(() => world.transcript(sessionId), { timeout: 30_000 }).toContain('"type":"tool_result"');
    await killAll(server, world);

    const next = await world.server();
    const done = await allowRequest(next, sessionId);
    expect(done).toMatchObject({ status: "idle", result: { isError: false } });
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe("once\n");
    expect(done.result?.result).toBe("Written after all.");
  });

  it("with onLost resume, the prompt of an unrecorded turn is sent again, with a warning that work may be done already", async () => {
    const server = await world.server();
    const cwd = world.folder();
    const { sessionId } = await server.call("claude_code", {
      prompt: writing(join(cwd, "a.txt")),
      cwd,
      advanced: { onLost: "resume" },
    });
    await waitForRequest(server, sessionId);
    await killAll(server, world);
    rmSync(join(world.configFolder, "projects"), { recursive: true });

    const next = await world.server();
    expect(await allowRequest(next, sessionId)).toMatchObject({ status: "idle", result: { result: "Written." } });
    const again = world.model.requests.filter(({ lastUserText }) =>
      lastUserText.includes("check before you repeat anything"),
    );
    expect(again.at(0)?.lastUserText).toContain("a.txt");
  });
});

describe("a server's death before Claude Code has recorded the prompt", () => {
  it("with onLost resume, the prompt is sent again and runs once", async () => {
    const server = await world.server();
    const cwd = world.folder();
    const options = { cwd, allowedTools: ["Bash"], advanced: { onLost: "resume" } };
    const { sessionId } = await server.call("claude_code", { prompt: BACK_PROMPT, waitMs: 40_000, ...options });
    for (const { pid } of world.processes()) process.kill(pid, "SIGKILL");
    const isLive = async () =>
      (await server.call("claude_code_session", { action: "get", sessionId })).sessions[0]?.["processLive"];
    await expect.poll(isLive, { timeout: 30_000 }).not.toBe(true);

    const run = { tools: [{ name: "Bash", input: { command: "echo once >> ran.txt" } }] };
    const prompt = `Run it. ${scriptTag([run, { text: "It ran." }])}`;
    await server.call("claude_code_reply", { sessionId, prompt });
    // A resuming process takes no prompt for some tenths of a second, so that the kill comes first.
    await killAll(server, world);
    expect(world.model.requests.some(({ lastUserText }) => lastUserText.includes("Run it."))).toBe(false);

    const next = await world.server();
    const done = await next.end(sessionId);
    expect(done).toMatchObject({ status: "idle", result: { result: "It ran.", isError: false } });
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe("once\n");
  });
});
