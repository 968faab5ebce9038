import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "vitest";
import { frameHead } from "../../src/shim/frame.ts";
import { ECHO, isRunning, FIRST_PROCESS, type Owner, sh, useShims, write } from "../kit/shim/shim.ts";

const shims = useShims();

const SESSIONS = 10;

describe("the memory of a shim", () => {
  it("a shim takes at most 1.15 times the memory of a bare Node with `net` and `child_process`, and 1 MB a session", async ({
    expect,
  }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    const bare = await shims.bareNode();
    const alone = shim.memory();
    expect(alone / bare).toBeLessThanOrEqual(1.15);
    for (let count = 0; count < SESSIONS; count += 1) {
      const id = `p${String(count)}`;
      await owner.start(id, ECHO);
      owner.send({ t: "write", id, epoch: 1, lineId: "a" }, "a");
      await owner.hasLines(1, id);
    }
    expect((shim.memory() - alone) / SESSIONS).toBeLessThanOrEqual(1_000_000);
  });

  it("connections without a hello cost a shim at most 40 MB: a body is refused, and eight are read at a time", async ({
    expect,
  }) => {
    const shim = await shims.start();
    // Keeps the shim alive when the other connections end.
    await shim.owner();
    const before = shim.memory();
    const bodies = await Promise.all(Array.from({ length: 20 }, async () => shim.connect()));
    const part = Buffer.concat([frameHead({ t: "hello" }, 100_000_000), Buffer.alloc(16_000_000, "x")]);
    const taken = ({ closed, input }: Owner) =>
      Promise.race([closed, new Promise((resolve) => input.write(part, resolve))]);
    await Promise.all(bodies.map(taken));
    expect(shim.memory() - before).toBeLessThan(40_000_000);
    const headers = await Promise.all(Array.from({ length: 20 }, async () => shim.connect()));
    const unfinished = Buffer.alloc(1_000_000, "x");
    unfinished.writeUInt32BE(1_048_576, 0);
    unfinished.writeUInt32BE(0, 4);
    for (const { input } of headers) input.write(unfinished);
    await Promise.all(Array.from({ length: 10 }, async () => shim.connect()));
    const served = shim.owner().then(({ received }) => received.map(({ message }) => message.t));
    // The hello of a new owner waits for none of the unfinished connections.
    expect(await Promise.race([served, ...headers.map(async ({ closed }) => closed)])).toEqual(["hello"]);
    for (const each of headers) each.end();
    expect(shim.memory() - before).toBeLessThan(40_000_000);
  });

  const LENGTH = 10_000;
  const flood = (kind: string, lines: number) => {
    const line = `{"type":"${kind}","text":"`.padEnd(LENGTH - 2, "x");
    return sh(`read go; yes '${line}"}' | head -n ${String(lines)}; read go; echo after`);
  };
  /** Lines that a shim keeps: 64 MiB, with 256 bytes more for each line. */
  const KEPT = Math.ceil(67_108_864 / (LENGTH + 256));
  /** Bytes. Each line has 10 KB, so that lines in transit count little. */
  const MAX_MEMORY = 250_000_000;

  it("memory is bounded when the owner acknowledges nothing: the process has to wait, and no line is lost", async ({
    expect,
  }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    await owner.start("p", flood("assistant", 13_000));
    write(owner, "go", "go");
    await owner.hasLines(KEPT);
    // By now `p` could have written all lines. The line of `q` comes after everything read from `p`.
    await owner.start("q", ["/bin/sleep", "0.3"]);
    await owner.hasLines(1, "q");
    expect(owner.lines().length).toBeLessThan(KEPT + 20);
    expect(shim.memory()).toBeLessThan(MAX_MEMORY);
    owner.send({ t: "ack", ...FIRST_PROCESS, upTo: KEPT });
    await owner.hasLines(KEPT + 5_000);
    owner.send({ t: "ack", ...FIRST_PROCESS, upTo: KEPT + 5_000 });
    const all = await owner.hasLines(13_000);
    expect(all.findIndex(([n], at) => n !== at + 1)).toBe(-1);
  });

  it("memory is bounded when the owner reads nothing: partial text is evicted and counted, and the turn goes on", async ({
    expect,
  }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    const LINES = 30_000;
    const { pid } = await owner.start("p", flood("stream_event", LINES));
    owner.output.pause();
    for (const lineId of ["go", "go-on"]) write(owner, lineId, lineId);
    // The last line comes behind all of the partial text.
    while (isRunning(pid)) await sleep(20);
    expect(shim.memory()).toBeLessThan(MAX_MEMORY);
    const next = await shim.owner();
    const { evicted, lost } = await next.attach("p", 2, 0);
    const lines = await next.hasLines(LINES + 2 - evicted);
    expect([lost, lines.at(-2), lines.at(-1)]).toEqual([0, [LINES + 1, "after"], [LINES + 2, "exit 0"]]);
    expect(LINES - evicted).toBeLessThan(KEPT);
  });

  it("memory is bounded when a line has no end: the process is ended, and the line counts as lost", async ({
    expect,
  }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    await owner.start("p", sh("echo before; exec cat /dev/zero"));
    expect(await owner.exit()).toEqual([3, "exit SIGKILL"]);
    const { body } = await owner.answer("stderr");
    expect(body).toBe("It wrote more than 134217728 bytes without a line break, and was ended.\n");
    const next = await shim.owner();
    expect(await next.attach("p", 2, 0)).toMatchObject({ lost: 1, evicted: 0 });
    expect(await next.hasLines(2)).toEqual([
      [1, "before"],
      [3, "exit SIGKILL"],
    ]);
  });

  it("memory is bounded when a client reads none of its answers", async ({ expect }) => {
    const shim = await shims.start();
    const owner = await shim.owner();
    owner.output.pause();
    for (let count = 0; count < 100_000; count += 1) owner.send({ t: "list" });
    // Another owner is served meanwhile, for long enough to read all of the messages above.
    const other = await shim.owner();
    await other.start("p", ECHO);
    for (let count = 1; count <= 100; count += 1) {
      write(other, `w${String(count)}`, "x");
      await other.hasLines(count);
    }
    expect(owner.input.writableLength).toBeGreaterThan(0);
    expect(shim.memory()).toBeLessThan(150_000_000);
  });
});
