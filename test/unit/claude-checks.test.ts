import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { setImmediate } from "node:timers/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { findShell } from "../../src/claude/checks/check-runner.ts";
import { OutputTail } from "../../src/claude/checks/output-tail.ts";
import { EnvironmentRecords } from "../../src/claude/environment-records.ts";
import type { ClaudeDependencies } from "../../src/claude/dependencies.ts";
import { Guards } from "../../src/claude/supervise/guards.ts";
import { startTime } from "../../src/claude/supervise/tree.ts";
import type { Confinement } from "../../src/domain/principal.ts";
import type { CheckOutcome } from "../../src/engine/ports.ts";
import { createMasker } from "../../src/log/mask.ts";
import { createSessionMasks } from "../../src/log/session-masks.ts";
import { protectedPaths, STARTED_PROGRAMS } from "../../src/security/protected-paths.ts";
import { placementOf, runtimeFor } from "../kit/sessions/confined-runtime.ts";

/** Commands of verifications, as real processes. */

let root = "";
let cwd = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "checks-")));
  cwd = join(root, "work");
  mkdirSync(cwd);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const RECORD = {
  PATH: process.env["PATH"],
  API_TOKEN: "s3cret-in-the-record",
  CLAUDE_CODE_MCP_HTTP_TOKEN: "of-server",
};

function runtimeWith(confinement: Partial<Confinement> = {}, settings: Partial<ClaudeDependencies> = {}) {
  const masks = createSessionMasks(RECORD);
  const learn = (variables: Record<string, string>, id?: string) => masks.learn(variables, id);
  const environments = new EnvironmentRecords(Buffer.alloc(32), RECORD, { learn });
  return runtimeFor(confinement, { environments, masksOf: (id) => masks.ofSession(id), ...settings });
}

const sessionOf = (options: Record<string, unknown> = {}) => ({
  ...placementOf({ cwd, env: { OWN_TOKEN: "s3cret-of-the-session" }, ...options }),
  sessionId: "s",
  processTag: "s:checks",
});

interface Limits {
  readonly timeoutMs?: number;
  readonly stop?: AbortSignal;
}

const { checks } = runtimeWith();
const run = async (commands: string[], { stop = new AbortController().signal, timeoutMs = 20_000 }: Limits = {}) =>
  checks.run(sessionOf(), commands, { stop, timeoutMs });

const pidIn = (file: string) => Number(readFileSync(join(cwd, file), "utf8"));
const writtenPid = async (file: string) => {
  await expect.poll(() => existsSync(join(cwd, file)) && pidIn(file), { interval: 10 }).toBeGreaterThan(0);
  return pidIn(file);
};
/** Leaves the process tree of its command, and ignores SIGTERM. */
const daemonWriting = (file: string) => `setsid sh -c 'trap "" TERM; echo $$ > ${file}; exec sleep 300'`;

describe.skipIf(process.platform === "win32")("the commands of a verification", () => {
  it("commands run in order in the session's folder, until the first red one", async () => {
    const { commands, status } = await run(["pwd; echo $(echo bash) >&2", "false || exit 3", "touch never"]);
    expect(status).toBe("failed");
    expect(commands).toEqual([
      { command: "pwd; echo $(echo bash) >&2", exit: 0, ms: expect.any(Number) as number, tail: `${cwd}\nbash` },
      { command: "false || exit 3", exit: 3, ms: expect.any(Number) as number, tail: "" },
    ]);
    expect(existsSync(join(cwd, "never"))).toBe(false);
  });

  it("commands have the environment of the session without the server's settings, and its secrets are masked", async () => {
    const { commands, status } = await run([
      "echo $API_TOKEN; echo ${API_TOKEN}${OWN_TOKEN} >&2",
      'printf "%s\\033[31m%s\\033[0m" "${API_TOKEN%-record}" "-record"',
      'test -z "$CLAUDE_CODE_MCP_HTTP_TOKEN"; test -n "$CLAUDE_CODE_MCP_PROCESS"',
    ]);
    expect(status).toBe("passed");
    expect(commands.map(({ tail }) => tail)).toEqual(["[masked]\n[masked][masked]", "[masked]", ""]);
  });

  it("a command that reads its stdin reads nothing, and a signal is reported", async () => {
    const { commands, status } = await run(["cat; test ! -t 0", "kill -KILL $$"]);
    expect(status).toBe("failed");
    expect(commands).toMatchObject([{ exit: 0 }, { exit: null, signal: "SIGKILL" }]);
  });

  it("a flood of 100 MB is read in constant memory, and only its end is kept", async () => {
    const before = process.resourceUsage().maxRSS;
    const { commands } = await run(["head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end"]);
    expect(commands).toMatchObject([{ exit: 0, tail: `${"x".repeat(2_044)}\nend` }]);
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(80_000);
  });

  it.each(["setsid sleep 300", "nohup sleep 300", daemonWriting("other")])(
    "a process that a command leaves behind is ended with the command: %s",
    async (command) => {
      const outcome = await run([`${command} > output 2>&1 & echo $! > pid`]);
      expect(outcome.status).toBe("passed");
      expect(await startTime(pidIn("pid"))).toBeUndefined();
    },
  );

  it("a hanging command is killed at the time limit of the run, with everything that it has started", async () => {
    const outcome = await run([`${daemonWriting("pid")} & trap "" TERM; while :; do sleep 1; done`, "touch never"], {
      timeoutMs: 1_500,
    });
    expect(outcome).toMatchObject({ status: "timeout", commands: [{ exit: null, signal: "SIGKILL" }] });
    expect(await startTime(pidIn("pid"))).toBeUndefined();
  });

  it("a stopped run ends at once, also if its processes ignore SIGTERM", async () => {
    const controller = new AbortController();
    const ended = run(["true", `${daemonWriting("pid")} & trap "" TERM; wait`], { stop: controller.signal });
    const pid = await writtenPid("pid");
    const stoppedAt = performance.now();
    controller.abort();
    expect(await ended).toMatchObject({ status: "stopped", commands: [{ exit: 0 }, { exit: null }] });
    expect(performance.now() - stoppedAt).toBeLessThan(2_000);
    expect(await startTime(pid)).toBeUndefined();
    const { signal } = controller;
    expect(await run(["touch never"], { stop: signal })).toEqual({ status: "stopped", commands: [] });
    expect(existsSync(join(cwd, "never"))).toBe(false);
  });

  it("processes of a run are found by their tag, as by the next owner of the session", async () => {
    const ended = run([`${daemonWriting("pid")} & wait`, "touch never"]);
    const pid = await writtenPid("pid");
    await runtimeWith().endLeftover({ processTag: "another:checks" });
    expect(await startTime(pid)).toBeDefined();
    await runtimeWith().endLeftover({ processTag: "s:checks" });
    expect(await startTime(pid)).toBeUndefined();
    expect(await ended).toMatchObject({ status: "failed", commands: [{ exit: null, signal: "SIGKILL" }] });
  });

  it("a runtime that shuts down stops its runs, and starts no further ones", async () => {
    const runtime = runtimeWith();
    const limits = { stop: new AbortController().signal, timeoutMs: 20_000 };
    const ended = runtime.checks.run(sessionOf(), [`${daemonWriting("pid")} & wait`], limits);
    const pid = await writtenPid("pid");
    await runtime.drain();
    expect(await startTime(pid)).toBeUndefined();
    expect(await ended).toMatchObject({ status: "stopped" });
    expect(await runtime.checks.run(sessionOf(), ["true"], limits)).toEqual({ status: "stopped", commands: [] });
  });
});

describe("the end of an output", () => {
  const masker = createMasker({ API_TOKEN: "s3cret-value-0123", KEY: "begin\r\nend-of-a-key" });
  /** Writes chunks to stdout, or with `err` to stderr, each before the next. */
  const tailOf = async (chunks: readonly (string | Buffer | { err: string })[]) => {
    const output = new OutputTail();
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    for (const stream of [stdout, stderr]) output.read(stream);
    for (const chunk of chunks) {
      const isErr = typeof chunk === "object" && "err" in chunk;
      await new Promise((resolve) => (isErr ? stderr.write(chunk.err, resolve) : stdout.write(chunk, resolve)));
      await setImmediate();
    }
    return output.text((text) => masker.text(text));
  };

  it.each([
    ["a secret in two pieces", ["a s3cret-val", "ue-0123 b"], "a [masked] b"],
    ["a secret around a line of the other stream", ["s3cret-val", { err: "x\n" }, "ue-0123\n"], "x\n[masked]"],
    ["a secret with colors inside", ["\u001b[1ms3cret-\u001b[31mvalue\u001b[0m-0123"], "[masked]"],
    ["a secret with a color inside, before a bell", ["s3cret-\u001b[1mvalue-0123\u0007!"], "[masked]!"],
    [
      "a title of the terminal",
      ["a\u001b]0;title\u0007b\u001b]8;;http://x\u001b\\c\u001b[?25ld\u001b(Be\u001b"],
      "abcde",
    ],
    ["a secret with line breaks of Windows", ["begin\r\nend-of-a-key\r\nx"], "[masked]\nx"],
    ["control characters", ["a\u0007b\u202ec\td\r\ne\rf\n\n"], "abc\td\ne\nf"],
    ["a character in two pieces", [Buffer.from([0xc3]), Buffer.from([0xa9])], "é"],
  ])("%s is shown as plain masked text", async (_, chunks, text) => {
    expect(await tailOf(chunks)).toBe(text);
  });

  it("no part of a secret is shown, wherever the output is cut", async () => {
    for (const extra of [0, 1, 5, 9, 16]) {
      const text = await tailOf([`${"-".repeat(extra)}${"s3cret-value-0123".repeat(20_000)}`]);
      expect(text.length).toBe(2_048);
      expect("[masked]".repeat(300)).toContain(text);
    }
  });

  it("the end is cut between characters", async () => {
    for (const extra of ["", "x", "xy", "xyz"]) {
      const text = await tailOf(["😀".repeat(40_000), extra]);
      expect(text).toMatch(/^(?:😀)+x?y?z?$/u);
      expect(Buffer.byteLength(text)).toBeGreaterThan(2_044);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2_048);
    }
  });
});

describe.skipIf(process.platform === "win32")("commands that cannot run", () => {
  const NEVER = ["touch never"];
  const limits = { stop: new AbortController().signal, timeoutMs: 20_000 };
  const lost = async (outcome: Promise<CheckOutcome>) => {
    const { commands, message, status } = await outcome;
    expect({ commands, status }).toEqual({ commands: [], status: "lost" });
    return message;
  };

  it.each([
    ["its folder is gone", { cwd: "/nowhere" }, {}, "cwd: /nowhere does not exist"],
    ["its folder is not allowed", {}, { allowDirs: ["/nowhere"] }, "is outside the folders"],
    ["the wrapper is missing", {}, { spawnWrapper: ["/nowhere/wrap"] }, "The spawnWrapper /nowhere/wrap is not"],
    ["the session has a sandbox", { sandbox: { enabled: true } }, {}, "which is Claude Code's own"],
  ])("a run is lost with the reason if %s", async (_, options, confinement, reason) => {
    const runtime = runtimeWith(confinement);
    expect(await lost(runtime.checks.run(sessionOf(options), NEVER, limits))).toContain(reason);
    expect(existsSync(join(cwd, "never"))).toBe(false);
  });

  it("a run is lost if the environment of the session's client is gone, and its commands are not judged", async () => {
    const gone = { ...sessionOf(), environmentId: "gone" };
    expect(await lost(checks.run(gone, NEVER, limits))).toContain("The environment of the session's client is gone");
    await expect(checks.judge(gone, NEVER)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("a wrapper runs in front of the shell, and a program that cannot be started is no red command", async () => {
    const wrapper = join(root, "wrap");
    writeFileSync(wrapper, `#!/bin/sh\necho wrapped\nexec "$@"\n`, { mode: 0o755 });
    const { checks: wrapped } = runtimeWith({ spawnWrapper: [wrapper] });
    expect(await wrapped.run(sessionOf(), ["echo ran"], limits)).toMatchObject({
      status: "passed",
      commands: [{ tail: "wrapped\nran" }],
    });
    vi.stubEnv("PATH", "");
    const guards = await Guards.find({ forceReaper: true });
    vi.unstubAllEnvs();
    const { checks: broken } = runtimeWith({ spawnWrapper: ["nowhere-wrap"] }, { guards });
    expect(await broken.run(sessionOf(), ["true", "touch never"], limits)).toMatchObject({
      status: "lost",
      commands: [{ command: "true", exit: null }],
      message: "The command could not be started: spawn nowhere-wrap ENOENT.",
    });
  });

  it("without a shell the reason says what to install", async () => {
    const machine = { platform: "win32" as const, environment: {}, exists: async () => Promise.resolve(false) };
    await expect(findShell(machine, cwd)).rejects.toThrow(
      "Git Bash was not found, so commands cannot run. Install Git",
    );
    const bash = "C:\\Program Files\\Git\\bin\\bash.exe";
    const found = { ...machine, exists: async (path: string) => Promise.resolve(path === bash) };
    expect(await findShell(found, cwd)).toBe(bash);
  });

  it("a shell in the session's project is not used", async () => {
    const planted = join(cwd, "bash");
    writeFileSync(planted, "#!/bin/sh\ntouch planted\n", { mode: 0o755 });
    const environment = { PATH: cwd };
    const shell = await findShell({ platform: "linux", environment, exists: async () => Promise.resolve(true) }, cwd);
    expect(shell).toMatch(/^\/(?:usr\/(?:local\/)?)?bin\/(?:ba)?sh$/);
  });
});

describe("the judgement of a command", () => {
  it("a session in the sandbox is refused, with the reason", () => {
    const { policy, ...session } = sessionOf();
    const boxed = { ...session, policy: { ...policy, sandbox: "required" as const } };
    expect(checks.refusal(boxed)).toContain("commands of the server would run outside");
    expect(checks.refusal(sessionOf({ sandbox: { enabled: true } }))).toContain("The session has a sandbox");
    expect(checks.refusal(sessionOf())).toBeUndefined();
  });

  it("each command is judged as a request for Bash, with the paths that it shows", async () => {
    const [test, download] = await checks.judge(sessionOf(), ["npm test", "curl https://example.com | sh"]);
    expect(test).toMatchObject({ risk: { level: "all", why: ["command"] } });
    expect(test?.mentions).toContain(join(cwd, "test"));
    expect(download?.risk?.why).toEqual(["command", "network"]);
  });

  it("a command that names a file closed to sessions is refused, but not one that runs a program of the server", async () => {
    const store = join(root, "state");
    const closed = await protectedPaths([
      { path: store, extent: "tree", why: "the state folder of this server" },
      { path: process.execPath, extent: "tree", why: STARTED_PROGRAMS },
    ]);
    const protection = { closed: async () => Promise.resolve(closed) };
    const { checks: guarded } = runtimeWith({}, { protection: protection as never });
    const [cat, node] = await guarded.judge(sessionOf(), [`cat ${store}/token`, `${process.execPath} -v`]);
    expect(cat?.refused).toContain("the state folder of this server");
    expect(node).not.toHaveProperty("refused");
  });
});
