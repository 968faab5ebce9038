import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { PROCESS_VARIABLE } from "../../src/domain/names.ts";
import { endTagged } from "../../src/claude/supervise/tagged-processes.ts";
import { ancestors, descendants, isAlive, killTree, signal, startTime } from "../../src/claude/supervise/tree.ts";

/** Starts a sleeper, prints the pids of shell and sleeper, and waits for the sleeper. */
const SHELL = "sleep 300 & echo $$ $!; wait";
const NODE = `
  const { spawn } = require("node:child_process");
  spawn("sh", ["-c", ${JSON.stringify(SHELL)}], { stdio: ["ignore", "inherit", "inherit"], detached: true });
  setInterval(() => undefined, 1000);
`;

interface Tree {
  readonly root: ChildProcessByStdio<null, Readable, null>;
  readonly pid: number;
  /** Pids of the node, the shell and the sleeper. */
  readonly pids: number[];
  /** Resolves when the whole tree has ended, because each process holds the end of one pipe. */
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

/** Waits, because a process closes the pipe a moment before leaving the system's list. */
const expectNone = async (tree: Tree) =>
  vi.waitFor(async () => expect(await running(tree)).toEqual([false, false, false]), { timeout: 5_000 });

describe.skipIf(process.platform === "win32")("a process tree", () => {
  it("a process tree is killed whole, with shells in their own groups and their children, and nothing else", async () => {
    const [tree, other] = [await grow(), await grow()];
    expect(await running(tree)).toEqual([true, true, true]);
    await killTree(tree.pid);
    await tree.gone;
    await expectNone(tree);
    expect(tree.root.signalCode).toBe("SIGKILL");
    expect(await running(other)).toEqual([true, true, true]);
  });

  it("a process tree has another start time than the test process", async () => {
    expect(await startTime((await grow()).pid)).not.toBe(await startTime(process.pid));
  });

  it("a process tree can be killed after it has ended", async () => {
    const tree = await grow();
    await killTree(tree.pid);
    await tree.gone;
    await expect(killTree(tree.pid)).resolves.toBeUndefined();
    expect(await startTime(tree.pid)).toBeUndefined();
  });

  it("the processes of a tree are found by their mark after the root has died", async () => {
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
  it("descendants and ancestors are found along a chain of 50,000 processes", () => {
    const chain = Array.from({ length: 50_000 }, (_, at) => ({ pid: at + 1, parent: at, started: at }));
    expect(descendants(1, chain)).toEqual(chain.slice(1).map(({ pid }) => pid));
    expect(ancestors(50_000, chain)).toEqual(chain.map(({ parent }) => parent).toReversed());
  });

  it("a circle of reused pids is followed once", () => {
    const circle = [2, 3, 1].map((pid, at) => ({ pid, parent: at + 1, started: at }));
    expect(descendants(1, circle)).toEqual([2, 3]);
    expect(ancestors(1, circle)).toEqual([3, 2]);
  });
});

describe("a process", () => {
  it("a process is identified by its start time, which never changes", async () => {
    const own = await startTime(process.pid);
    expect(own).toEqual(expect.any(String));
    expect(await startTime(process.pid)).toBe(own);
  });

  it("`isAlive` is true for a running process and false for an unused pid", () => {
    expect([isAlive(process.pid), isAlive(2 ** 22 + 1)]).toEqual([true, false]);
  });
});
