import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import {
  attachInShim,
  endAttached,
  endGracefully,
  startInShim,
  TakenOverError,
} from "../../src/claude/shim/shimmed-handle.ts";
import type { ShimControls, ProcessHandle } from "../../src/claude/supervise/process-handle.ts";
import { EndedRecord } from "../../src/shim/ended.ts";
import type { Attached, FromShim } from "../../src/shim/protocol.ts";
import {
  ATTACHED,
  connectOwner,
  ID,
  LISTED_PROCESS,
  PROCESS_IDENTITY,
  START_OPTIONS,
  startScripted,
} from "../kit/shim/scripted-owner.ts";
import { SHIM_IDENTITY } from "../kit/shim/scripted-shim.ts";

async function attachProcess(message: Attached = ATTACHED, body = "") {
  const { connection, place, shim } = await connectOwner({ list: { t: "processes", processes: [LISTED_PROCESS] } });
  const attaching = attachInShim(connection, { ...place, line: 5 });
  await shim.hears("attach");
  shim.say(message, body);
  return { connection, shim, ...(await attaching) };
}

describe("a process started behind a shim", () => {
  it("a process gets its command, and the variables that have a value", async () => {
    const { shim, spawned } = await startScripted({ t: "started", id: ID, ...PROCESS_IDENTITY });
    expect(await shim.hears("start")).toEqual({
      t: "start",
      id: ID,
      epoch: 4,
      command: "claude",
      args: ["-p"],
      env: { A: "1" },
      tag: "9 store/tag",
    });
    // Record for the next owner of the process.
    expect(shim.received.at(-1)?.body).toBe('{"A":"0"}');
    expect([spawned.pid, spawned.inShim?.startedAt]).toEqual([PROCESS_IDENTITY.pid, PROCESS_IDENTITY.startedAt]);
  });

  it("a process that cannot be started is reported as Node reports such a child", async () => {
    const { errors, spawned } = await startScripted({
      t: "failed",
      id: ID,
      message: "spawn claude ENOENT",
      code: "ENOENT",
    });
    expect([spawned.pid, spawned.inShim]).toEqual([undefined, undefined]);
    const { error } = await spawned.exit;
    expect(error).toMatchObject({ message: "spawn claude ENOENT", code: "ENOENT", syscall: "spawn" });
    expect(errors).toEqual([error]);
    spawned.kill();
    await spawned.gone;
  });

  it("a failed start leaves the connection open, even if nothing listens to the error yet", async () => {
    const failed: FromShim = { t: "failed", id: ID, message: "spawn claude EACCES", code: "EACCES" };
    const { connection, place } = await connectOwner({ start: failed });
    const spawned = await new Promise<ProcessHandle>((resolve) =>
      startInShim(connection, { ...START_OPTIONS, ...place }, resolve),
    );
    expect(await spawned.exit).toMatchObject({ error: { code: "EACCES" } });
    expect(connection.isClosed).toBe(false);
  });

  it("a failed start names the cause if the system is out of file descriptors", async () => {
    const { spawned } = await startScripted({ t: "failed", id: ID, message: "spawn claude EMFILE", code: "EMFILE" });
    const { error } = await spawned.exit;
    expect(error?.message).toContain("file");
    expect(error?.cause).toMatchObject({ code: "EMFILE" });
  });

  it("a process has ended when its shim has", async () => {
    const { shim, spawned } = await startScripted({ t: "started", id: ID, ...PROCESS_IDENTITY });
    shim.die();
    expect(await spawned.exit).toMatchObject({ code: null, signal: null, error: { message: "its shim has ended" } });
  });

  it.each([
    ["SIGTERM", "SIGTERM"],
    ["SIGNONE", null],
  ])("a process ends with its last words and a signal of this system: %s", async (signal, known) => {
    const { shim, spawned } = await startScripted({ t: "started", id: ID, ...PROCESS_IDENTITY });
    shim.say({ t: "stderr", id: ID }, "last words\n");
    shim.say({ t: "exit", id: ID, n: 1, code: null, signal });
    expect(await spawned.exit).toEqual({ code: null, signal: known });
    expect(spawned.stderrTail()).toContain("last words");
    // Tells the reaper to forget the process.
    expect(await shim.hears("reaper")).toEqual({ t: "reaper", line: `-${String(PROCESS_IDENTITY.pid)}` });
  });

  it("a process gets commands of its owner under the epoch of its session once it belongs to one", async () => {
    const { connection, shim, spawned } = await startScripted({ t: "started", id: ID, ...PROCESS_IDENTITY });
    const held = spawned.inShim!;
    shim.say({ t: "lines", id: ID, n: 1 }, '{"type":"a"}\n{"type":"b"}');
    while (held.lastLine() < 2) await new Promise(setImmediate);
    held.own(8);
    shim.say({ ...ATTACHED, id: ID });
    held.acknowledge(99);
    held.endInput();
    held.terminate();
    spawned.kill();
    await shim.hears("kill");
    const of = { id: ID, epoch: 8 };
    expect(shim.received.slice(2).map(({ message }) => message)).toEqual([
      { t: "attach", ...of, after: 2 },
      { t: "ack", ...of, upTo: 2 },
      { t: "end-input", ...of },
      { t: "signal", ...of, signal: "SIGTERM" },
      { t: "kill", ...of },
    ]);
    held.letGo();
    expect((await spawned.exit).error?.message).toBe("another server has taken it over");
    held.endInput();
    spawned.kill();
    await spawned.gone;
    connection.send({ t: "end" });
    await shim.hears("end");
    expect(shim.received.slice(7).map(({ message }) => message)).toEqual([{ t: "end" }]);
  });
});

describe("a process taken over behind a shim", () => {
  it("a process taken over gives lines after the answer to `initialize`, and is not given hooks again", async () => {
    const before = JSON.stringify({ PATH: "/ü", A_KEY: "s" });
    const record = Buffer.byteLength(before);
    const message = { ...ATTACHED, lost: 2, record, initialize: true };
    const { process, shim, spawned, ...gone } = await attachProcess(message, `${before}{"former":true}`);
    expect(gone).toMatchObject({ lost: 2, record: { PATH: "/ü", A_KEY: "s" } });
    const output = text(process.stdout);
    shim.say({ t: "lines", id: ID, n: 6 }, '{"type":"assistant"}');
    const request = { subtype: "initialize", hooks: { Stop: [] } };
    process.stdin.write(`${JSON.stringify({ type: "control_request", request_id: "i", request })}\n`);
    await shim.hears("write");
    const written = shim.received.at(-1)!;
    expect([written.message, written.body]).toEqual([
      { t: "write", id: ID, epoch: 4, lineId: "4:i" },
      '{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}',
    ]);
    const answer = { subtype: "success", request_id: "i", pending_permission_requests: [{ request_id: "q" }] };
    shim.say({ t: "lines", id: ID, n: 7 }, JSON.stringify({ type: "control_response", response: answer }));
    expect(await spawned.inShim!.pending).toEqual(["q"]);
    shim.say({ t: "exit", id: ID, n: 8, code: 0, signal: null });
    expect(await spawned.exit).toEqual({ code: 0, signal: null });
    const types = (await output)
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { type: string }).type);
    expect(types).toEqual(["control_response", "assistant"]);
  });

  it("a process taken over goes on behind a request once the shim has taken or refused the response", async () => {
    const { process, shim } = await attachProcess();
    process.stdin.write('{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}\n');
    await shim.hears("write");
    shim.say({ t: "lines", id: ID, n: 6 }, '{"type":"control_response","response":{"request_id":"i"}}');
    const asks = (id: string) => `{"type":"control_request","request_id":"${id}","request":{"subtype":"can_use_tool"}}`;
    shim.say({ t: "lines", id: ID, n: 7 }, `${asks("q")}\n${asks("r")}\n{"type":"assistant"}`);
    let read = "";
    process.stdout.on("data", (chunk: Buffer) => (read += chunk.toString()));
    const hasRead = async (part: string) => {
      while (!read.includes(part)) await once(process.stdout, "data");
    };
    await hasRead('"request_id":"q"');
    expect(read).not.toContain('"r"');
    shim.say({ t: "written", id: ID, lineId: "r:q", again: false });
    await hasRead('"request_id":"r"');
    expect(read).not.toContain("assistant");
    shim.say({ t: "refused", id: ID, of: "write", lineId: "r:r", message: "closed" });
    await hasRead("assistant");
  });

  it("a process that refuses `initialize` is read to its end", async () => {
    const { process, shim, spawned } = await attachProcess();
    process.stdout.resume();
    process.stdin.write('{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}\n');
    const { lineId } = await shim.hears("write");
    shim.say({ t: "refused", id: ID, of: "write", lineId, message: "it has closed its input" });
    shim.say({ t: "exit", id: ID, n: 6, code: 1, signal: null });
    expect(await spawned.exit).toEqual({ code: 1, signal: null });
  });

  it("a process is lost to a later owner, which alone ends it", async () => {
    const { process, shim, spawned } = await attachProcess();
    const exited = once(process, "exit");
    shim.say({ t: "superseded", id: ID });
    expect(await spawned.exit).toMatchObject({ error: { message: "another server has taken it over" } });
    await spawned.gone;
    // `kill`, called by the SDK at the end of a session, ends nothing either.
    expect([await exited, process.kill()]).toEqual([[null, "SIGHUP"], true]);
    expect(shim.received.map(({ message }) => message.t)).toEqual(["hello", "list", "attach"]);
  });

  it.each([
    ["its shim does not have it", [], /no longer has the process/],
    ["a later owner has it", [{ ...LISTED_PROCESS, epoch: 5 }], /another server has taken it over/],
    ["its shim refuses", [LISTED_PROCESS], /epoch 4 is not 6/],
  ])("a process is not taken over if %s", async (_, processes, why) => {
    const refused: FromShim = { t: "refused", id: ID, of: "attach", message: "epoch 4 is not 6" };
    const { connection, place } = await connectOwner({ list: { t: "processes", processes }, attach: refused });
    const attaching = attachInShim(connection, { ...place, line: 0 });
    await expect(attaching).rejects.toThrow(why);
    await expect(attaching.catch((error: unknown) => error instanceof TakenOverError)).resolves.toBe(
      processes[0]?.epoch === 5,
    );
  });

  it.each([
    ["before the attach", []],
    ["during the attach", [LISTED_PROCESS]],
  ])("a process that its shim has ended %s is not taken over, and the error says why", async (_, processes) => {
    const refused: FromShim = { t: "refused", id: ID, of: "attach", message: "no such process" };
    const { connection, place, shim } = await connectOwner({ list: { t: "processes", processes }, attach: refused });
    new EndedRecord(shim.address, SHIM_IDENTITY).add(ID, "It was idle.");
    await expect(attachInShim(connection, { ...place, line: 0 })).rejects.toThrow("It was idle.");
  });

  it("a process that no owner goes on with is ended in order, and then forgotten by its shim", async () => {
    const { connection: _, shim, ...attachment } = await attachProcess();
    const ending = endAttached(attachment);
    await shim.hears("end-input");
    shim.say({ t: "exit", id: ID, n: 6, code: 0, signal: null });
    await ending;
    expect(await shim.hears("ack")).toEqual({ t: "ack", id: ID, epoch: 4, upTo: 6 });
    expect(shim.received.some(({ message }) => message.t === "kill")).toBe(false);
  });

  it("a process gets SIGTERM if the end of its input does not end it", async () => {
    const calls: string[] = [];
    let onExit: () => void = () => undefined;
    const exit = new Promise<void>((resolve) => (onExit = resolve));
    const held: Pick<ShimControls, "endInput" | "terminate"> = {
      endInput: () => void calls.push("end-input"),
      terminate: () => {
        calls.push("terminate");
        onExit();
      },
    };
    expect(await endGracefully(held as ShimControls, exit)).toBe(true);
    expect(calls).toEqual(["end-input", "terminate"]);
  });
});
