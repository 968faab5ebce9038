import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "vitest";
import type { ToShim } from "../../src/shim/protocol.ts";
import { ECHO, isRunning, FIRST_PROCESS, PROGRAM, sh, useShims, write } from "../kit/shim/shim.ts";

const shims = useShims();
const REAPER = {
  command: process.execPath,
  args: [join(dirname(PROGRAM), "../claude/supervise/reaper-process.js")],
};

describe("the end of a shim", () => {
  it.concurrent(
    "a shim ends a process for which no owner comes, with all below it, and then itself",
    async ({ expect }) => {
      const shim = await shims.start({ keepMs: 200 });
      const owner = await shim.owner();
      const { pid } = await owner.start("p", sh("trap '' TERM; echo $$; sleep 100 & echo $!; wait; sleep 100"));
      const [, below] = (await owner.hasLines(2)).map(([, text]) => Number(text));
      owner.end();
      expect(await shim.gone).toBe(0);
      // SIGKILL takes a moment.
      await expect.poll(() => [isRunning(pid), isRunning(below!)]).toEqual([false, false]);
      expect(shim.log()).toContain("no owner came for process p within 200 ms");
    },
  );

  it.concurrent(
    "a shim frozen for longer than `keepMs` still keeps its process for an owner that attaches",
    async ({ expect }) => {
      const shim = await shims.start({ keepMs: 1_000 });
      const owner = await shim.owner();
      const { pid } = await owner.start("p", ECHO);
      owner.end();
      await owner.closed;
      const other = await shim.owner();
      other.send({ t: "list" });
      expect((await other.answer("processes")).processes).toEqual([expect.not.objectContaining({ owned: true })]);
      process.kill(shim.pid, "SIGSTOP");
      other.send({ t: "attach", id: "p", epoch: 2, after: 0 });
      await sleep(1_500);
      process.kill(shim.pid, "SIGCONT");
      expect((await other.answer("attached")).pid).toBe(pid);
    },
  );

  it.concurrent("a shim without an owner starts its daemon again, three times at most", async ({ expect }) => {
    const file = join(shims.root, "restarted");
    const restart = { command: "/bin/sh", args: ["-c", 'echo "$PPID" >> "$0"', file] };
    const shim = await shims.start({ restart, restartAfterMs: 50 });
    const owner = await shim.owner();
    await owner.start("p", ECHO);
    owner.end();
    const started = () => (existsSync(file) ? readFileSync(file, "utf8") : "");
    const three = `${String(shim.pid)}\n`.repeat(3);
    await expect.poll(started).toBe(three);
    // Time for two more restarts.
    await sleep(600);
    expect(started()).toBe(three);
    expect(shim.log()).toContain("the restart command has ended with 0");
  });

  it.concurrent("a shim with only a spare ends, and starts no daemon", async ({ expect }) => {
    const file = join(shims.root, "not-for-a-spare");
    const restart = { command: "/usr/bin/touch", args: [file] };
    const shim = await shims.start({ restart, restartAfterMs: 50 });
    const owner = await shim.owner();
    await owner.start("p", ECHO, { epoch: 0 });
    owner.send({ t: "list" });
    const [listed] = (await owner.answer("processes")).processes;
    expect(listed).toEqual(expect.not.objectContaining({ session: true }));
    owner.end();
    expect(await shim.gone).toBe(0);
    expect(existsSync(file)).toBe(false);
  });

  it.concurrent("a shim starts no daemon when an owner comes in time", async ({ expect }) => {
    const file = join(shims.root, "not-in-time");
    const restart = { command: "/usr/bin/touch", args: [file] };
    const shim = await shims.start({ restart, restartAfterMs: 1_000 });
    const owner = await shim.owner();
    await owner.start("p", ECHO);
    owner.end();
    const next = await shim.owner();
    await next.attach("p", 2, 0);
    await sleep(1_200);
    expect(existsSync(file)).toBe(false);
  });

  it.concurrent(
    "a shim ends a process that is bound to its owner at once, and keeps the others",
    async ({ expect }) => {
      const shim = await shims.start();
      const owner = await shim.owner();
      const file = join(shims.root, "had-time");
      const bound = await owner.start("b", sh(`while read line; do :; done; sleep 0.4; touch ${file}`));
      const { pid } = await owner.start("p", ECHO);
      owner.send({ t: "bound", id: "b", epoch: 1 });
      const other = await shim.owner();
      owner.end();
      await owner.closed;
      while (isRunning(bound.pid)) await sleep(5);
      expect(existsSync(file)).toBe(false);
      expect((await other.attach("p", 2, 0)).pid).toBe(pid);
      other.send({ t: "attach", id: "b", epoch: 2, after: 0 });
      expect(await other.answer("refused")).toMatchObject({ id: "b" });
    },
  );

  it.concurrent(
    "a shim that its owner told to end starts nothing more, and ends with its last process",
    async ({ expect }) => {
      const shim = await shims.start();
      const owner = await shim.owner();
      await owner.start("p", sh("trap 'echo term; exit' TERM; echo on; while :; do sleep 0.05; done"));
      await owner.hasLines(1);
      owner.send({ t: "end" });
      owner.send({ t: "start", ...FIRST_PROCESS, id: "q", command: "/bin/sh", args: [], env: {}, tag: "" });
      expect((await owner.answer("failed")).message).toBe("this shim is ending");
      owner.send({ t: "signal", ...FIRST_PROCESS, signal: "SIGTERM" });
      expect(await owner.hasLines(3)).toEqual([
        [1, "on"],
        [2, "term"],
        [3, "exit 0"],
      ]);
      owner.send({ t: "ack", ...FIRST_PROCESS, upTo: 3 });
      expect(await shim.gone).toBe(0);
    },
  );

  it.concurrent(
    "a connection that owns nothing ends neither a process nor the shim, whatever it sends",
    async ({ expect }) => {
      const shim = await shims.start({ reaper: REAPER });
      const owner = await shim.owner();
      const { pid } = await owner.start("p", ECHO, { tag: " no/1-tag/1/p" });
      const other = await shim.owner();
      const refused: ToShim[] = [
        { t: "write", ...FIRST_PROCESS, lineId: "a" },
        { t: "ack", ...FIRST_PROCESS, upTo: 0 },
        { t: "end-input", ...FIRST_PROCESS },
        { t: "signal", ...FIRST_PROCESS, signal: "SIGKILL" },
        { t: "kill", ...FIRST_PROCESS },
        { t: "bound", ...FIRST_PROCESS },
        { t: "attach", ...FIRST_PROCESS, after: 0 },
        { t: "reaper", line: `-${String(pid)}` },
      ];
      for (const message of [...refused, { t: "end" } as const]) other.send(message);
      other.send({ t: "start", ...FIRST_PROCESS, command: "/bin/sh", args: [], env: {}, tag: "" });
      await other.answer("failed");
      const answers = other.received.flatMap(({ message }) => (message.t === "refused" ? [message.of] : []));
      expect(answers).toEqual(refused.map(({ t }) => t));
      write(owner, "b", "b");
      expect(await owner.hasLines(1)).toEqual([[1, "got b"]]);
      other.end();
      // Without a process, too, the shim stays for `owner`, and starts the next process.
      owner.send({ t: "kill", ...FIRST_PROCESS });
      await owner.exit();
      owner.send({ t: "ack", ...FIRST_PROCESS, upTo: 2 });
      const third = await shim.owner();
      third.send({ t: "end" });
      third.end();
      await third.closed;
      await owner.start("q", ECHO, { tag: " no/1-tag/1/q" });
    },
  );

  it.concurrent(
    "a killed shim leaves nothing behind: its reaper ends what the shim has started",
    async ({ expect }) => {
      const shim = await shims.start({ reaper: REAPER });
      const owner = await shim.owner();
      const { pid } = await owner.start("p", sh("echo on; exec sleep 100"), { tag: " no/1-tag/1/p" });
      await owner.hasLines(1);
      process.kill(shim.pid, "SIGKILL");
      await owner.closed;
      await expect.poll(() => isRunning(pid)).toBe(false);
    },
  );

  it.concurrent("a shim replaces a dead reaper by another, which knows what runs", async ({ expect }) => {
    const file = join(shims.root, "reapers");
    const reaper = {
      command: "/bin/sh",
      args: ["-c", 'echo on; while read line; do echo "$$ $line" >> "$0"; done', file],
    };
    const shim = await shims.start({ reaper });
    const owner = await shim.owner();
    await owner.start("p", ECHO, { tag: " the-tag" });
    const told = () => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);
    await expect.poll(() => told().length).toBe(1);
    const [first, ...line] = told()[0]!.split(" ");
    // A reaper that ends at once is not replaced.
    await sleep(1_100);
    process.kill(Number(first), "SIGKILL");
    await expect.poll(() => told().length).toBe(2);
    const [second, ...again] = told()[1]!.split(" ");
    expect([again, second === first]).toEqual([line, false]);
  });

  it.concurrent("a shim reports an exit although a process that was left behind writes on", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    await owner.start("p", sh("(while :; do echo on; sleep 0.1; done) & exit 3"));
    const [, text] = await owner.exit();
    expect(text).toBe("exit 3");
  });

  it.concurrent("a shim does not start without its reaper", async ({ expect }) => {
    const reaper = { command: process.execPath, args: ["-e", "process.exit(1)"] };
    await expect(shims.start({ reaper })).rejects.toThrow("the reaper cannot be started");
  });

  it.concurrent("a shim ends its processes and itself at SIGTERM", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    const { pid } = await owner.start("p", sh("trap '' TERM; while :; do sleep 0.05; done"));
    process.kill(shim.pid, "SIGTERM");
    process.kill(shim.pid, "SIGHUP");
    expect(await shim.gone).toBe(0);
    expect(isRunning(pid)).toBe(false);
  });
});
