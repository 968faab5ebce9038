import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { isShimAlive, readEndReason, explainGone } from "../../src/claude/shim/why-gone.ts";
import { startTime } from "../../src/claude/supervise/tree.ts";
import type { SessionState } from "../../src/domain/session.ts";
import { ENDED_SUFFIX, EndedRecord, readEnded } from "../../src/shim/ended.ts";

const folder = mkdtempSync(join(tmpdir(), "shim-ended-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;
const newSocket = () => join(folder, `${String((count += 1))}.shim`);
const IDENTITY = { pid: 17, startedAt: "4711" };
const DAEMON = { daemon: "d", sdk: "1.0.0" };

describe("a shim's record of ended processes", () => {
  it("a record has every ended process, and no draft stays behind", async () => {
    const socket = newSocket();
    const record = new EndedRecord(socket, IDENTITY);
    record.add("a", "It was idle.");
    record.add("b", "It was full.");
    const ended = await readEnded(`${socket}${ENDED_SUFFIX}`);
    expect(ended).toMatchObject({
      ...IDENTITY,
      processes: [
        { id: "a", why: "It was idle." },
        { id: "b", why: "It was full." },
      ],
    });
    expect(readdirSync(folder)).toEqual([`1.shim${ENDED_SUFFIX}`]);
  });

  it("a shim whose folder is gone goes on without a record", async () => {
    const socket = join(folder, "gone", "x.shim");
    new EndedRecord(socket, IDENTITY).add("a", "It was idle.");
    expect(await readEnded(`${socket}${ENDED_SUFFIX}`)).toBeUndefined();
  });

  it.each([
    ["no JSON", "{"],
    ["no object", "null"],
    ["a text", '"pid"'],
    ["no pid", JSON.stringify({ startedAt: "1", processes: [] })],
    ["no start", JSON.stringify({ pid: 1, processes: [] })],
    ["no list", JSON.stringify({ pid: 1, startedAt: "1", processes: {} })],
  ])("a record is ignored if its file has %s", async (_, text) => {
    const file = newSocket();
    writeFileSync(file, text);
    expect(await readEnded(file)).toBeUndefined();
  });

  it("a record is read without its invalid entries", async () => {
    const file = newSocket();
    const whole = { id: "a", at: "2026-01-01T00:00:00Z", why: "It was idle." };
    const others = [null, 1, { ...whole, id: 1 }, { ...whole, at: 1 }, { ...whole, why: undefined }];
    writeFileSync(file, JSON.stringify({ ...IDENTITY, processes: [...others, whole] }));
    expect(await readEnded(file)).toEqual({ ...IDENTITY, processes: [whole] });
  });

  it("a record counts only for the shim that has written it, and for the processes named there", async () => {
    const address = newSocket();
    new EndedRecord(address, IDENTITY).add("a", "It was idle.");
    const ref = { address, ...IDENTITY, ...DAEMON, keepMs: 0 };
    expect(await readEndReason(ref, "a")).toBe("It was idle.");
    expect(await readEndReason(ref, "b")).toBeUndefined();
    expect(await readEndReason({ ...ref, pid: 18 }, "a")).toBeUndefined();
    expect(await readEndReason({ ...ref, startedAt: "4712" }, "a")).toBeUndefined();
  });
});

describe("the reason why no server can go on with a process", async () => {
  const living = { pid: process.pid, startedAt: (await startTime(process.pid))! };
  const withShim = (ref: object) =>
    ({
      phase: "live",
      shim: { address: newSocket(), ...living, ...DAEMON, keepMs: 0, ...ref },
    }) as SessionState["process"];

  it.each([
    [
      "another version of the SDK",
      { ...DAEMON, sdk: "2.0.0" },
      expect.stringContaining("Agent SDK 1.0.0, this server uses 2.0.0"),
    ],
    ["the same version", DAEMON, undefined],
    ["another daemon", { daemon: "e", sdk: "2.0.0" }, undefined],
    ["a server without shims", undefined, undefined],
  ])("the reason depends on the server that asks, while the shim lives: %s", async (_, server, why) => {
    const reason = await explainGone({ process: withShim({}), server, tag: "a" });
    expect(reason).toEqual(why);
  });

  it("the reason is the death of the shim if its process is gone or its pid was reused", async () => {
    for (const ref of [{ startedAt: "1" }, { pid: 2 ** 22 + 1 }]) {
      const gone = withShim(ref);
      expect(await explainGone({ process: gone, server: DAEMON, tag: "a" })).toBe("Its shim has died as well.");
    }
    expect([await isShimAlive(living), await isShimAlive({ ...living, startedAt: "1" })]).toEqual([true, false]);
  });

  it("the reason recorded by the shim comes before all others", async () => {
    const address = newSocket();
    new EndedRecord(address, IDENTITY).add("a", "It was idle.");
    const gone = withShim({ address, ...IDENTITY });
    expect(await explainGone({ process: gone, server: { ...DAEMON, sdk: "2.0.0" }, tag: "a" })).toBe("It was idle.");
  });

  it("a process without a shim has no reason here", async () => {
    for (const process of [{ phase: "none" }, { phase: "live" }] as SessionState["process"][]) {
      expect(await explainGone({ process, server: DAEMON, tag: "a" })).toBeUndefined();
    }
  });
});
