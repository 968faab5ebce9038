import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { PROCESS_VARIABLE } from "../../src/domain/names.ts";
import { endTagged } from "../../src/claude/supervise/tagged-processes.ts";
import { ancestors, descendants, isAlive, killTree, signal, startTime } from "../../src/claude/supervise/tree.ts";

/** A shell in its own process group that prints its pid and that of a sleeper, and waits for the sleeper. */
const SHELL = "sleep 300 & echo $$ $!; wait";
const NODE = `
  const { spawn } = require("node:child_process");
  spawn("sh", ["-c", ${JSON.stringify(SHELL)}], { stdio: ["ignore", "inherit", "inherit"], detached: true });
  setInterval(() => undefined, 1000);
`;

interface Tree {
  readonly root: ChildProcessByStdio<null, Readable, null>;
  readonly pid: number;
  /** The node, its shell and the shell's sleeper. */
  readonly pids: number[];
  /** Resolves when the whole tree has ended: each process holds the other end of one pipe. */
  readonly gone: Promise<unknown>;
}

const trees: Tree[] = [];
afterEach(async () => {
  for (const { pids } of trees) for (const pid of pids) signal(pid, "SIGKILL");
  await Promise.all(trees.splice(0).map(({ gone }) => gone));
});

async function grow(mark = ""): Promise<Tree> {
  const env = { PATH: process.env["PATH"], ...(mark !== "" && { [PROCESS_VARIABLE]: mark }) };
  const root = spawn(process.execPath, ["-e", NODE], { stdio: ["ignore", "pipe", "inherit"], env });
  const gone = once(root, "close");
  const [line]: string[] = await once(createInterface({ input: root.stdout }), "line");
  const pid = root.pid!;
  const tree = { root, pid, pids: [pid, ...line!.split(" ").map(Number)], gone };
  trees.push(tree);
  return tree;
}

const running = async ({ pids }: Tree) => (await Promise.all(pids.map(startTime))).map((time) => time !== undefined);

/** A process closes its pipe a moment before it leaves the system's list. */
const expectNone = async (tree: Tree) =>
  vi.waitFor(async () => expect(await running(tree)).toEqual([false, false, false]), { timeout: 5_000 });

describe.skipIf(process.platform === "win32")("a process tree", () => {
  it("is killed whole, including shells in their own groups and their children, and nothing else is", async () => {
    const [tree, other] = [await grow(), await grow()];
    expect(await running(tree)).toEqual([true, true, true]);
    await killTree(tree.pid);
    await tree.gone;
    await expectNone(tree);
    expect(tree.root.signalCode).toBe("SIGKILL");
    expect(await running(other)).toEqual([true, true, true]);
  });

  it("begins at another time than the test process", async () => {
    expect(await startTime((await grow()).pid)).not.toBe(await startTime(process.pid));
  });

  it("can be killed after it has ended", async () => {
    const tree = await grow();
    await killTree(tree.pid);
    await tree.gone;
    await expect(killTree(tree.pid)).resolves.toBeUndefined();
    expect(await startTime(tree.pid)).toBeUndefined();
  });

  it("is found by its mark after its root has died", async () => {
    const [tree, other] = [await grow("one"), await grow("one-and-more")];
    signal(tree.pid, "SIGKILL");
    await once(tree.root, "exit");
    expect(await running(tree)).toEqual([false, true, true]);
    expect(await endTagged(({ value }) => value === "one", 5_000)).toBe(2);
    await tree.gone;
    expect(await running(tree)).toEqual([false, false, false]);
    expect(await running(other)).toEqual([true, true, true]);
  });
});

describe("a list of processes", () => {
  it("is followed along a chain of any length", () => {
    const chain = Array.from({ length: 50_000 }, (_, at) => ({ pid: at + 1, parent: at, started: at }));
    expect(descendants(1, chain)).toEqual(chain.slice(1).map(({ pid }) => pid));
    expect(ancestors(50_000, chain)).toEqual(chain.map(({ parent }) => parent).toReversed());
  });

  it("is followed once around a circle, which reused pids can close", () => {
    const circle = [2, 3, 1].map((pid, at) => ({ pid, parent: at + 1, started: at }));
    expect(descendants(1, circle)).toEqual([2, 3]);
    expect(ancestors(1, circle)).toEqual([3, 2]);
  });
});

describe("a process", () => {
  it("is identified by its start time, which never changes", async () => {
    const own = await startTime(process.pid);
    expect(own).toEqual(expect.any(String));
    expect(await startTime(process.pid)).toBe(own);
  });

  it("is alive or not", () => {
    expect([isAlive(process.pid), isAlive(2 ** 22 + 1)]).toEqual([true, false]);
  });
});
