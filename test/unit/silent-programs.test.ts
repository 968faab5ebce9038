import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { duplexPair } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ClaudeProcess } from "../../src/claude/process/claude-process.ts";
import type { LaunchPlan } from "../../src/claude/process/launch.ts";
import { attachInShim, startInShim } from "../../src/claude/shim/shimmed-handle.ts";
import type { ProcessHandle } from "../../src/claude/supervise/process-handle.ts";
import { startTime } from "../../src/claude/supervise/tree.ts";
import { operationsThrough } from "../../src/daemon/operations.ts";
import { ALIVE_MS, WATCH } from "../../src/daemon/wire.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { NPM_MS } from "../../src/packages/npm.ts";
import { PackageCache } from "../../src/packages/package-cache.ts";
import type { ToShim } from "../../src/shim/protocol.ts";
import {
  connectOwner,
  ID,
  LISTED_PROCESS,
  PROCESS_IDENTITY,
  START_OPTIONS,
  startScripted,
} from "../kit/shim/scripted-owner.ts";

/** Limits for each wait on a silent program. */

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

const never = async <T>() => new Promise<T>(() => undefined);

/** Returns the error of `work` as text, or "nothing" if `work` succeeds. */
async function failureOf(work: Promise<unknown>): Promise<string> {
  return work.then(() => "nothing", String);
}

type Shim = Awaited<ReturnType<typeof connectOwner>>["shim"];

describe("a shim that does not answer", () => {
  it.each([
    ["ends the connection", (shim: Shim) => shim.die(), "its shim has ended"],
    ["refuses the start", (shim: Shim) => shim.say({ t: "refused", of: "start", id: ID, message: "no" }), "no"],
    ["does not answer", () => void vi.advanceTimersByTimeAsync(10_000), "its shim does not answer"],
  ])("a shim that %s has not started a process", async (_, stop, why) => {
    const { connection, place, shim } = await connectOwner({});
    const errors: Error[] = [];
    let onSpawned: (spawned: ProcessHandle) => void = () => undefined;
    const spawning = new Promise<ProcessHandle>((resolve) => (onSpawned = resolve));
    startInShim(connection, { ...START_OPTIONS, ...place }, onSpawned).on("error", (error: Error) =>
      errors.push(error),
    );
    await shim.hears("start");
    stop(shim);
    const { exit, pid } = await spawning;
    expect([pid, errors.map(({ message }) => message)]).toEqual([undefined, [why]]);
    expect(await exit).toMatchObject({ error: { message: why } });
  });

  it("a process that a shim starts late is killed and forgotten", async () => {
    const { connection, place, shim } = await connectOwner({});
    startInShim(connection, { ...START_OPTIONS, ...place }, () => undefined);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await shim.hears("kill")).toEqual({ t: "kill", id: ID, epoch: 4 });
    shim.say({ t: "started", id: ID, ...PROCESS_IDENTITY });
    shim.say({ t: "lines", id: ID, n: 1 }, '{"type":"a"}');
    shim.say({ t: "exit", id: ID, n: 2, code: null, signal: "SIGKILL" });
    await vi.waitUntil(() => acknowledged(shim).includes(2));
    expect(acknowledged(shim)).toEqual([1, 2]);
  });

  it("a process that this server has killed counts as ended if its shim does not answer", async () => {
    const child = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
    const ended = once(child, "exit");
    const pid = child.pid ?? 0;
    const { shim, spawned } = await startScripted({
      t: "started",
      id: ID,
      pid,
      startedAt: (await startTime(pid)) ?? "",
    });
    spawned.kill();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(await spawned.exit).toMatchObject({ signal: "SIGKILL", error: { message: "its shim does not answer" } });
    // A thawed shim forgets the process.
    shim.say({ t: "exit", id: ID, n: 3, code: null, signal: "SIGKILL" });
    await vi.waitUntil(() => acknowledged(shim).includes(3));
  });

  it("a process whose shim does not answer cannot be attached, and is killed", async () => {
    const { connection, place, shim } = await connectOwner({ list: { t: "processes", processes: [LISTED_PROCESS] } });
    const failure = failureOf(attachInShim(connection, { ...place, line: 0 }));
    await shim.hears("attach");
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await failure).toContain("its shim does not answer");
    await shim.hears("kill");
  });

  const isAck = (message: ToShim) => message.t === "ack" && message.id === ID;
  const acknowledged = ({ received }: Shim) =>
    received.flatMap(({ message }) => (isAck(message) && message.t === "ack" ? [message.upTo] : []));
});

const PLAN: LaunchPlan = {
  start: never,
  giveUp: never,
  resumed: false,
  folders: { cwd: "/", additionalDirectories: [], home: "/", closed: [], programs: [] },
  account: { id: "folder:/", paidBy: "a login", configFolder: "/", hasWindows: true },
  configFolder: "/",
  identity: { configFolder: "/", paidBy: "a login" },
  expectsStructured: false,
  isSandboxed: false,
  denying: [],
  allowsCommands: false,
  missing: [],
  watchCost: "never",
  notices: [],
};

it.each([
  ["its start is prepared", never<LaunchPlan>()],
  ["it is started", Promise.resolve(PLAN)],
])("a process that is killed while %s counts as ended after ten seconds", async (_, launch) => {
  const signals: AgentSignal[] = [];
  const text = (value: string) => value;
  const process = new ClaudeProcess({
    launch,
    isAttached: false,
    transcriptId: "t",
    epoch: 1,
    onSignal: (signal) => void signals.push(signal),
    onPartial: () => undefined,
    mask: text,
    maskUnfinished: text,
  });
  const refused = failureOf(process.control({ do: "usage" }));
  // Lets the start begin.
  await vi.advanceTimersByTimeAsync(1);
  process.kill();
  await vi.advanceTimersByTimeAsync(10_000);
  await process.ended;
  const error = "It was killed, and has not ended within 10 s.";
  expect(signals).toEqual([{ type: "exited", code: null, signal: null, error }]);
  expect(await refused).toContain(error);
});

it("an operation fails if the daemon gives no sign of life for five seconds", async () => {
  const sent: string[] = [];
  const silent = operationsThrough(async () => {
    const [theirs, ours] = duplexPair();
    ours.on("data", (chunk: Buffer) => void sent.push(...chunk.toString().trim().split("\n")));
    return Promise.resolve(theirs);
  });
  const failure = failureOf(silent.partial("s"));
  await vi.waitUntil(() => sent.includes(WATCH));
  await vi.advanceTimersByTimeAsync(5 * ALIVE_MS);
  expect(await failure).toContain("does not answer");
});

it("npm is stopped if it has not ended after an hour", async () => {
  const home = mkdtempSync(join(tmpdir(), "ccm-npm-"));
  try {
    writeFileSync(join(home, "npm"), '#!/bin/sh\necho $$ > "$HOME/pid"; exec sleep 100\n', { mode: 0o755 });
    const environment = { HOME: home, PATH: [home, "/usr/bin", "/bin"].join(delimiter) };
    const cache = new PackageCache({ cacheFolder: join(home, "cache"), environment });
    const part = { name: "part", version: "1.0.0", integrity: "sha512-none", bytes: 1000, entry: "main.js" };
    const failure = failureOf(cache.install(part));
    const pid = () => (existsSync(join(home, "pid")) ? Number(readFileSync(join(home, "pid"), "utf8")) : 0);
    await vi.waitUntil(() => pid() > 0);
    await vi.advanceTimersByTimeAsync(NPM_MS);
    expect(await failure).toContain("npm has not ended within 60 minutes");
    await vi.waitUntil(async () => (await startTime(pid())) === undefined);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
