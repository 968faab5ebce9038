import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { describe, it } from "vitest";
import { readEnded } from "../../src/shim/ended.ts";
import { ECHO, isRunning, PROGRAM, sh, useShims, write } from "../kit/shim/shim.ts";

const shims = useShims();
const PASSED = "the lease of this owner has passed";
/** Ignores all but SIGKILL, and prints the pid of a child. */
const STUBBORN = sh("trap '' TERM HUP; sleep 100 & echo $!; while true; do wait; sleep 100; done");

describe("the lease of a shim's owner", () => {
  it.concurrent(
    "a shim kills the processes of a dead owner whose lease has passed, and says why",
    async ({ expect }) => {
      const shim = await shims.start();
      const owner = await shim.owner();
      owner.send({ t: "lease", forMs: 700 });
      const { pid } = await owner.start("p", STUBBORN);
      const [[, below] = [0, ""]] = await owner.hasLines(1);
      owner.end();
      await owner.closed;
      expect(isRunning(pid)).toBe(true);
      expect(await shim.gone).toBe(0);
      await expect.poll(() => [isRunning(pid), isRunning(Number(below))]).toEqual([false, false]);
      const why = "Its node did not renew its lease in time, so its shim ended Claude Code.";
      expect((await readEnded(`${shim.socket}.ended`))?.processes).toEqual([expect.objectContaining({ id: "p", why })]);
    },
  );

  it.concurrent("a shim kills the processes of a frozen owner, which is no owner afterwards", async ({ expect }) => {
    const shim = await shims.start();
    const { owner, process: frozen } = await shim.ownerProcess();
    const { pid } = await owner.start("p", STUBBORN);
    const spare = await owner.start("s", ECHO, { epoch: 0 });
    owner.send({ t: "lease", forMs: 400 });
    write(owner, "a", "a");
    await owner.answer("written");
    process.kill(frozen.pid!, "SIGSTOP");
    await expect.poll(() => [isRunning(pid), isRunning(spare.pid)]).toEqual([false, false]);
    const next = await shim.owner();
    next.send({ t: "attach", id: "p", epoch: 2, after: 0 });
    expect((await next.answer("refused")).message).toBe("no process has this id");
    process.kill(frozen.pid!, "SIGCONT");
    expect(await owner.exit()).toEqual([2, "exit SIGKILL"]);
    owner.send({ t: "start", id: "q", epoch: 3, command: "/bin/true", args: [], env: {}, tag: "" });
    expect((await owner.answer("failed")).message).toBe(PASSED);
    owner.send({ t: "lease", forMs: 60_000 });
    expect(await owner.start("r", ECHO)).toMatchObject({ id: "r" });
    owner.end();
  });

  it.concurrent("a renewed lease, and that of the next owner, keep a process alive", async ({ expect }) => {
    const shim = await shims.start();
    const first = await shim.owner();
    first.send({ t: "lease", forMs: 300 });
    await first.start("p", ECHO);
    first.send({ t: "lease", forMs: 1_200 });
    first.end();
    const next = await shim.owner();
    next.send({ t: "lease", forMs: 60_000 });
    next.send({ t: "attach", id: "p", epoch: 2, after: 0 });
    await next.answer("attached");
    // An owner without a lease, of a store on one machine, and its process have no end.
    const endless = await shim.owner();
    const other = await endless.start("o", ECHO);
    const short = await shim.owner();
    short.send({ t: "lease", forMs: 1_300 });
    const { pid } = await short.start("short", ECHO);
    await expect.poll(() => isRunning(pid)).toBe(false);
    write(next, "a", "a", 2);
    expect(await next.hasLines(1)).toEqual([[1, "got a"]]);
    expect(isRunning(other.pid)).toBe(true);
    for (const each of [next, endless]) each.end();
  });

  it.concurrent("a frozen shim ends what has passed before it reads a later lease", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    owner.send({ t: "lease", forMs: 500 });
    await owner.start("p", STUBBORN);
    await owner.hasLines(1);
    process.kill(shim.pid, "SIGSTOP");
    owner.send({ t: "lease", forMs: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, 600));
    process.kill(shim.pid, "SIGCONT");
    expect(await owner.exit()).toEqual([2, "exit SIGKILL"]);
  });
});

describe("the lease of a server without a shim", () => {
  it.concurrent("a reaper ends what its server does not renew, although the server lives", async ({ expect }) => {
    const children = [spawn("sleep", ["100"]), spawn("sleep", ["100"])] as const;
    const [first, second] = children;
    const reaper = spawn(process.execPath, [join(dirname(PROGRAM), "../claude/supervise/reaper-process.js")]);
    await once(reaper.stdout, "data");
    const ended = once(first, "exit");
    reaper.stdin.write(`+${String(first.pid)}  first\n=60000\n=300\n`);
    expect(await ended).toEqual([null, "SIGTERM"]);
    // A server that is continued begins another lease.
    reaper.stdin.write(`=60000\n+${String(second.pid)}  second\n`);
    expect(isRunning(second.pid!)).toBe(true);
    const gone = [once(second, "exit"), once(reaper, "exit")];
    reaper.stdin.end();
    expect(await Promise.all(gone)).toEqual([
      [null, "SIGTERM"],
      [0, null],
    ]);
  });
});
