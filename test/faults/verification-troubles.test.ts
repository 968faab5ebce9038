import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Connection } from "../kit/clients/connection.ts";
import { ENVIRONMENT, repository } from "../kit/git-repository.ts";
import { commandOf } from "../kit/process-tree.ts";
import { constants } from "../kit/servers/constants.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** Commands, folders and servers that misbehave at the end of a turn. */

const world = useWorld({ agent: "stand-in", daemon: "never" });
const TIMEOUT = { timeout: 60_000 };
const EDIT = {
  tools: [{ name: "Bash", input: { command: "echo new > made.txt" } }],
};
const DONE = [EDIT, { text: "Done." }];
const WAIT = { waitMs: 40_000 };
const ENDLESS = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done";

async function made(file: string): Promise<string> {
  await vi.waitUntil(() => existsSync(file) && readFileSync(file, "utf8") !== "", { timeout: 20_000, interval: 20 });
  return readFileSync(file, "utf8").trim();
}

const isAlive = (pid: string) => commandOf(Number(pid)) !== "";

/** Starts a turn in a repository. */
async function begin(client: Connection, over: Record<string, unknown> = {}, advanced: Record<string, unknown> = {}) {
  const cwd = world.folder();
  repository(cwd, "text");
  const start = {
    prompt: scriptTag(DONE),
    cwd,
    allowedTools: ["Bash"],
    advanced,
    ...over,
  };
  const { result, sessionId } = await client.call("claude_code", start);
  return { cwd, result, sessionId };
}

/** Starts a turn whose command ignores SIGTERM, and resolves once the command runs. */
async function beginEndless(client: Connection, advanced: Record<string, unknown> = {}) {
  const begun = await begin(client, {}, { verify: [ENDLESS], ...advanced });
  return { ...begun, pid: await made(join(begun.cwd, "pid")) };
}

async function readEnd(sessionId: string) {
  const events = await storedEvents(join(world.configFolder, ".."), sessionId);
  const ofType = (type: string) =>
    events.filter((each) => each.type === type).map(({ event }) => (JSON.parse(event) as { data: unknown }).data);
  return {
    ended: ofType("turn.ended"),
    verified: ofType("verification.ended"),
  };
}

const INTERRUPTED = [{ verification: { status: "interrupted" } }];

describe("commands of a verification", () => {
  it("no process of a command outlives its run, floods memory or waits for input", TIMEOUT, async () => {
    const server = await world.server();
    const verify = [
      "setsid sh -c 'echo $$ > daemon; sleep 300' >/dev/null 2>&1 & until [ -s daemon ]; do sleep 0.05; done",
      "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end",
      'read -r line; test -z "$line"',
    ];
    const { cwd, result, sessionId } = await begin(server, WAIT, { verify });
    expect(result).toMatchObject({
      isError: false,
      verification: { status: "passed" },
    });
    const { verified } = await readEnd(sessionId);
    const tail = expect.stringMatching(/^x{2043}\nend$|^x{2044}\nend$/) as string;
    expect(verified).toMatchObject([
      {
        verification: {
          commands: [{ exit: 0 }, { exit: 0, tail }, { exit: 0 }],
        },
      },
    ]);
    expect(isAlive(await made(join(cwd, "daemon")))).toBe(false);
  });

  it("an interrupt ends a command that ignores SIGTERM", TIMEOUT, async () => {
    const server = await world.server();
    const { pid, sessionId } = await beginEndless(server);
    await server.call("claude_code_session", {
      action: "interrupt",
      sessionId,
    });
    expect((await server.end(sessionId)).result).toMatchObject({
      errorSubtype: "interrupted",
    });
    await vi.waitUntil(() => !isAlive(pid), { timeout: 5_000 });
    expect((await readEnd(sessionId)).verified).toMatchObject(INTERRUPTED);
  });

  it.each(["SIGTERM", "SIGINT"] as const)("%s during a command ends the server soon", TIMEOUT, async (signal) => {
    const server = await world.http();
    const { pid, sessionId } = await beginEndless(await server.connect());
    const before = performance.now();
    server.signal(signal);
    await server.exited;
    // The end of a server without a command takes a few hundred ms on a busy machine.
    expect(performance.now() - before).toBeLessThan(3_000);
    await vi.waitUntil(() => !isAlive(pid), { timeout: 5_000 });
    const { ended, verified } = await readEnd(sessionId);
    expect(ended).toMatchObject([{ outcome: "interrupted", errorSubtype: "shutdown" }]);
    expect(verified).toMatchObject(INTERRUPTED);
  });

  it("the end of its client ends a turn with endWithClient, and its command", TIMEOUT, async () => {
    const daemon = await world.daemon();
    const client = await daemon.client();
    const { pid, sessionId } = await beginEndless(client, { endWithClient: true });
    await client.close();
    await vi.waitUntil(async () => (await readEnd(sessionId)).ended.length > 0, { timeout: 20_000 });
    const { ended, verified } = await readEnd(sessionId);
    expect(ended).toMatchObject([{ outcome: "interrupted" }]);
    expect(verified).toMatchObject(INTERRUPTED);
    await vi.waitUntil(() => !isAlive(pid), { timeout: 5_000 });
    await daemon.close();
  });

  it(
    "Claude Code killed during a command of a session that is not kept ends its turn, unverified",
    TIMEOUT,
    async () => {
      const server = await world.server();
      const { pid, sessionId } = await beginEndless(server, {
        persistSession: false,
      });
      const claude = world.processes().find(({ command }) => command.includes(sessionId));
      process.kill(claude!.pid, "SIGKILL");
      const { result } = await server.end(sessionId);
      expect(result).toMatchObject({
        warnings: [expect.stringContaining("not verified (interrupted)")],
      });
      await vi.waitUntil(() => !isAlive(pid), { timeout: 5_000 });
    },
  );

  it("another server on the store ends the commands of a killed server, and runs them anew", TIMEOUT, async () => {
    const [first, second] = [await world.server(), await world.server()];
    const { cwd, sessionId } = await begin(
      first,
      {},
      {
        verify: ["echo $$ >> pids; until [ -e go ]; do sleep 0.05; done", "echo 2 >> ran"],
      },
    );
    const pid = await made(join(cwd, "pids"));
    process.kill(first.pid, "SIGKILL");
    const end = second.end(sessionId);
    await vi.waitUntil(() => readFileSync(join(cwd, "pids"), "utf8").split("\n").length > 2, { timeout: 20_000 });
    expect(isAlive(pid)).toBe(false);
    writeFileSync(join(cwd, "go"), "");
    expect((await end).result).toMatchObject({
      isError: false,
      verification: { status: "passed", attempts: 1 },
      receipt: { by: "tree", complete: true },
    });
    expect(readFileSync(join(cwd, "ran"), "utf8")).toBe("2\n");
    expect((await readEnd(sessionId)).ended).toHaveLength(1);
  });
});

describe("a receipt", () => {
  it("a state folder that takes no copies leaves lines unknown, which the receipt says", TIMEOUT, async () => {
    const home = world.folder();
    mkdirSync(join(home, ".local/state/claude-agents-mcp"), {
      recursive: true,
      mode: 0o700,
    });
    // Root ignores a read-only folder, but nobody writes below a file.
    writeFileSync(join(home, ".local/state/claude-agents-mcp/watch"), "");
    const server = await world.server({ env: { HOME: home } });
    const edit = {
      tools: [{ name: "Bash", input: { command: "echo more >> a.txt" } }],
    };
    const { result, sessionId } = await begin(server, {
      prompt: scriptTag([edit, { text: "Done." }]),
      ...WAIT,
    });
    expect(result).toMatchObject({
      receipt: {
        by: "tree",
        complete: true,
        files: { changed: 1, names: ["a.txt"] },
      },
    });
    const whole = await server.call("claude_code_session", {
      action: "receipt",
      sessionId,
    });
    expect(JSON.stringify(whole)).toContain(
      "Lines and tests of 1 files that were dirty before the turn are not known.",
    );
  });

  it(
    "a git that hangs delays the end of the turn by its time limit, and only tools tell of changes",
    TIMEOUT,
    async () => {
      const bin = world.folder();
      writeFileSync(join(bin, "git"), "#!/bin/sh\nsleep 300\n", {
        mode: 0o755,
      });
      const server = await world.server({
        env: { PATH: `${bin}:${ENVIRONMENT.PATH}`, ...constants({ compareMs: 1_500 }) },
      });
      const { cwd, sessionId } = await begin(server, {
        prompt: scriptTag([EDIT, { gateBefore: "git", text: "Done." }]),
      });
      await made(join(cwd, "made.txt"));
      const before = performance.now();
      world.model.release("git");
      const { result } = await server.end(sessionId);
      expect(performance.now() - before).toBeLessThan(4_000);
      expect(result).toMatchObject({
        isError: false,
        receipt: { by: "tools", complete: false },
      });
    },
  );

  it("a lost turn that is run again has one receipt, from the folders before its first run", TIMEOUT, async () => {
    const server = await world.server();
    const script = [EDIT, { gateBefore: "rerun", text: "Done." }];
    const { cwd, sessionId } = await begin(server, { prompt: scriptTag(script) }, { onLost: "resume" });
    await made(join(cwd, "made.txt"));
    await world.model.waitForRequest(
      (request) => request.sessionId === sessionId && "entry" in request.served && request.served.entry === 1,
    );
    const claude = world.processes().find(({ command }) => command.includes(sessionId));
    process.kill(claude!.pid, "SIGKILL");
    world.model.release("rerun");
    await vi.waitUntil(async () => (await readEnd(sessionId)).ended.length === 2, { timeout: 20_000 });
    const { result } = await server.end(sessionId);
    expect(result).toMatchObject({
      isError: false,
      receipt: {
        by: "tree",
        complete: true,
        files: { added: 1, names: ["made.txt"] },
      },
    });
    expect((await readEnd(sessionId)).ended[0]).not.toHaveProperty("receiptEventId");
  });
});
