import { cpSync, existsSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "vitest";
import { SHIM_PROTOCOL } from "../../src/shim/protocol.ts";
import { ECHO, isRunning, FIRST_PROCESS, PROGRAM, sh, useShims, write } from "../kit/shim/shim.ts";

const shims = useShims();

describe("a shim", () => {
  it.concurrent(
    "a shim numbers lines, takes input, and ends when its last process is acknowledged and no owner is connected",
    async ({ expect }) => {
      const shim = await shims.start();
      expect(statSync(shim.socket).mode & 0o777).toBe(0o600);
      const owner = await shim.owner();
      const { pid } = await owner.start("p", ECHO, { tag: "7 tag" });
      for (const name of ["a", "b"]) write(owner, name, name);
      expect(await owner.hasLines(2)).toEqual([
        [1, "got a"],
        [2, "got b"],
      ]);
      owner.send({ t: "list" });
      const { processes } = await owner.answer("processes");
      expect(processes).toEqual([
        expect.objectContaining({ id: "p", pid, epoch: 1, tag: "7 tag", session: true, owned: true }),
      ]);
      owner.send({ t: "end-input", ...FIRST_PROCESS });
      expect((await owner.hasLines(3)).at(-1)).toEqual([3, "exit 0"]);
      owner.send({ t: "ack", ...FIRST_PROCESS, upTo: 3 });
      write(owner, "c", "late");
      expect((await owner.answer("refused")).message).toBe("no process has this id");
      owner.end();
      expect(await shim.gone).toBe(0);
      expect(existsSync(shim.socket)).toBe(false);
    },
  );

  it.concurrent(
    "a shim hands each line to the next owner once and in order, and the exit last, when owners are killed",
    async ({ expect }) => {
      const shim = await shims.start();
      const first = await shim.ownerProcess();
      const speak =
        "for i in $(seq 1 300); do echo line $i; done; read go; for i in $(seq 301 600); do echo line $i; done";
      const { pid } = await first.owner.start("p", sh(speak));
      await first.owner.hasLines(300);
      first.owner.send({ t: "ack", ...FIRST_PROCESS, upTo: 100 });
      // A later message of `first`: once answered, `ack` has arrived.
      first.owner.send({ t: "list" });
      await first.owner.answer("processes");
      first.process.kill("SIGKILL");
      await first.owner.closed;
      const second = await shim.owner();
      expect(await second.attach("p", 2, 100)).toMatchObject({ pid, lost: 0, evicted: 0, written: [], open: [] });
      write(second, "go", "go", 2);
      await second.hasLines(501);
      second.end();
      const third = await shim.owner();
      await third.attach("p", 3, 250);
      const read = [
        ...first.owner.lines().slice(0, 100),
        ...second.lines().slice(0, 150),
        ...(await third.hasLines(351)),
      ];
      expect(read).toEqual([
        ...Array.from({ length: 600 }, (_, at) => [at + 1, `line ${String(at + 1)}`]),
        [601, "exit 0"],
      ]);
    },
  );

  it.concurrent("a shim keeps lines and exit of a process that ends while no owner is there", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    const { pid } = await owner.start("p", sh("read go; echo last; printf half; exit 3"));
    write(owner, "go", "go");
    await owner.answer("written");
    owner.end();
    const next = await shim.owner();
    while (isRunning(pid)) await sleep(5);
    await next.attach("p", 2, 0);
    expect(await next.hasLines(3)).toEqual([
      [1, "last"],
      [2, "half"],
      [3, "exit 3"],
    ]);
  });

  it.concurrent("a shim writes a line once by its id, also when another owner repeats the line", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    await owner.start("p", ECHO);
    for (const lineId of ["a", "a", "b"]) write(owner, lineId, lineId);
    await owner.hasLines(2);
    const next = await shim.owner();
    expect((await next.attach("p", 2, 2)).written).toEqual(["a", "b"]);
    for (const lineId of ["b", "c"]) write(next, lineId, lineId, 2);
    expect(await next.hasLines(1)).toEqual([[3, "got c"]]);
    const answers = next.received.filter(({ message }) => message.t === "written").map(({ message }) => message);
    expect(answers).toMatchObject([
      { lineId: "b", again: true },
      { lineId: "c", again: false },
    ]);
  });

  it.concurrent("a shim refuses what a frozen owner writes after another has attached", async ({ expect }) => {
    const shim = await shims.start();
    const { owner: frozen, process: child } = await shim.ownerProcess();
    await frozen.start("p", ECHO);
    child.kill("SIGSTOP");
    write(frozen, "r:1", "allow");
    const next = await shim.owner();
    await next.attach("p", 2, 0);
    write(next, "r:1", "deny", 2);
    await next.hasLines(1);
    child.kill("SIGCONT");
    expect(await frozen.answer("superseded")).toMatchObject({ id: "p" });
    expect(await frozen.answer("refused")).toMatchObject({
      of: "write",
      lineId: "r:1",
      message: expect.stringContaining("epoch 1"),
    });
    write(next, "end", "end", 2);
    expect(await next.hasLines(2)).toEqual([
      [1, "got deny"],
      [2, "got end"],
    ]);
    expect(frozen.lines()).toEqual([]);
  });

  it.concurrent("a shim passes stderr on, and sends its last 4 KiB to the next owner", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    await owner.start("p", sh("read go; seq 1 5000 >&2; echo done; read go"));
    write(owner, "go", "go");
    await owner.find((message, body) => message.t === "stderr" && body.endsWith("5000\n"));
    const next = await shim.owner();
    await next.attach("p", 2, 0);
    const { body } = await next.answer("stderr");
    expect([body.length <= 4_096, body.endsWith("\n4999\n5000\n"), /^\d{4}\n/.test(body)]).toEqual([true, true, true]);
  });

  it.concurrent(
    "a shim gives the next owner the record that came with the start, before the answer to initialize",
    async ({ expect }) => {
      const shim = await shims.start();
      const owner = await shim.owner();
      const record = JSON.stringify({ A_KEY: "ü".repeat(1_000_000) });
      owner.send({ t: "start", ...FIRST_PROCESS, command: "/bin/cat", args: [], env: {}, tag: "" }, record);
      await owner.answer("started");
      const before = await (await shim.owner()).attach("p", 2, 0);
      expect([before.record, before.body === record]).toEqual([Buffer.byteLength(record), true]);
      const last = await shim.owner();
      await last.attach("p", 3, 0);
      // `/bin/cat` echoes, so that lines written here count as Claude Code's output.
      write(last, "i", '{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}', 3);
      const answer = '{"type":"control_response","response":{"subtype":"success","request_id":"i"}}';
      write(last, "a", answer, 3);
      await last.hasLines(2);
      const after = await (await shim.owner()).attach("p", 4, 2);
      expect([after.record, after.body === record + answer]).toEqual([Buffer.byteLength(record), true]);
    },
  );

  it.concurrent("a shim goes on when its program and the state folder are deleted", async ({ expect }) => {
    const [folder, stateFolder] = [join(shims.root, "package"), join(shims.root, "state")];
    cpSync(dirname(PROGRAM), folder, { recursive: true });
    const shim = await shims.start({ program: join(folder, "shim.js"), stateFolder, keepMs: 200 });
    for (const each of [folder, stateFolder]) rmSync(each, { recursive: true });
    const owner = await shim.owner();
    // With `cwd`, because the working folder of the shim is gone.
    owner.send({
      t: "start",
      ...FIRST_PROCESS,
      command: "/bin/sh",
      args: ["-c", "echo on; read go; cat"],
      env: {},
      tag: "",
      cwd: "/",
    });
    await owner.hasLines(1);
    write(owner, "go", "go");
    write(owner, "x", "x");
    expect(await owner.hasLines(2)).toEqual([
      [1, "on"],
      [2, "x"],
    ]);
    owner.end();
    expect(await shim.gone).toBe(0);
  });

  it.concurrent("a shim reports an exit although a child of the process holds its output", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    await owner.start("p", sh("sleep 60 & echo $!"));
    const [[, child] = []] = await owner.hasLines(2);
    expect(owner.lines().at(-1)).toEqual([2, "exit 0"]);
    process.kill(Number(child), "SIGKILL");
  });

  it.concurrent("a shim binds its socket again after the file was removed", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    const { pid } = await owner.start("p", ECHO);
    rmSync(shim.socket);
    await expect.poll(() => existsSync(shim.socket), { timeout: 20_000 }).toBe(true);
    const next = await shim.owner();
    expect((await next.attach("p", 2, 0)).pid).toBe(pid);
    expect(statSync(shim.socket).mode & 0o777).toBe(0o600);
    next.end();
    owner.end();
  });

  it.concurrent("a shim answers what it cannot do, and goes on", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    owner.send({ t: "start", ...FIRST_PROCESS, command: "/no/such/program", args: [], env: {}, tag: "" });
    expect(await owner.answer("failed")).toMatchObject({ id: "p", code: "ENOENT" });
    await owner.start("p", ECHO);
    write(owner, "a", "two\nlines");
    expect((await owner.answer("refused")).message).toContain("line break");
    const stranger = await shim.connect();
    stranger.send({ t: "list" });
    expect((await stranger.answer("refused")).message).toContain("hello");
    const newer = await shim.connect();
    newer.send({ t: "hello", protocol: SHIM_PROTOCOL + 1, daemon: "d1" });
    expect([(await newer.answer("hello")).protocol, (await newer.answer("refused")).message]).toEqual([
      SHIM_PROTOCOL,
      `only protocol ${String(SHIM_PROTOCOL)} is supported`,
    ]);
    const other = await shim.connect();
    other.send({ t: "hello", protocol: SHIM_PROTOCOL, daemon: "d2" });
    expect((await other.answer("refused")).message).toBe("this shim belongs to the daemon d1");
    const noise = await shim.connect();
    noise.input.write(Buffer.alloc(64, 0xff));
    await Promise.all([stranger.closed, newer.closed, other.closed, noise.closed]);
    write(owner, "b", "b");
    expect(await owner.hasLines(1)).toEqual([[1, "got b"]]);
  });

  it.concurrent("a shim carries out nothing more of a connection that has ended", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    await owner.start("p", ECHO, { tag: "x".repeat(100_000) });
    const unheard = await shim.owner();
    unheard.output.pause();
    // Corked into a single chunk: the shim reads on in the chunk only when answers are taken.
    unheard.input.cork();
    for (let count = 0; count < 50; count += 1) unheard.send({ t: "list" });
    unheard.send({ t: "attach", id: "p", epoch: 9, after: 0 });
    unheard.input.uncork();
    // Handled after the chunk has arrived.
    write(owner, "a", "a");
    await owner.hasLines(1);
    unheard.end();
    await unheard.closed;
    const next = await shim.owner();
    expect(await next.attach("p", 2, 1)).toMatchObject({ lost: 0 });
  });
});
