import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import type { AdoptRequest } from "../../src/engine/api.ts";
import { ConflictError } from "../../src/engine/ports.ts";
import { type TestNode, twoNodes, type World } from "../kit/step/two-nodes.ts";

/** Refused forks, adoptions, renames and deletions of sessions. */

let world: World;
let a: TestNode;
beforeEach(() => {
  world = twoNodes();
  ({ a } = world);
});
afterEach(() => world.close());

const ELSEWHERE = "11111111-1111-4111-8111-111111111111";
const prompt = { text: "go on" };

async function adopt(over: Partial<AdoptRequest> = {}) {
  return a.engine.adopt(LOCAL_CALLER, { sessionId: ELSEWHERE, fork: false, options: {}, prompt, ...over });
}

describe("a fork", () => {
  it("a fork of a closed session is refused", async () => {
    const id = await a.openIdle();
    await a.engine.close("local", id, "ann");
    const message = "The session was closed and cannot be forked.";
    await expect(a.engine.fork(LOCAL_CALLER, id, prompt)).rejects.toMatchObject({ code: "CANCELLED", message });
  });

  it("a fork of a session without a transcript is refused", async () => {
    const id = await a.open("begin", undefined, { persistSession: false });
    const refused = { code: "INVALID_ARGUMENT", message: expect.stringContaining("no transcript to copy") as string };
    await expect(a.engine.fork(LOCAL_CALLER, id, prompt)).rejects.toMatchObject(refused);
  });

  it("a fork of a session with a running turn is refused", async () => {
    const id = await a.open();
    const refused = { code: "SESSION_BUSY", sessionId: id };
    await expect(a.engine.fork(LOCAL_CALLER, id, prompt)).rejects.toMatchObject(refused);
  });

  it("a fork from a message on starts with the conversation up to the message", async () => {
    const id = await a.openIdle();
    const { sessionId } = await a.engine.fork(LOCAL_CALLER, id, { ...prompt, resumeAt: "m1" });
    const { state } = await a.engine.get("local", sessionId);
    expect(state.origin).toEqual({ transcriptId: id, at: "m1" });
  });
});

describe("a session from disk", () => {
  it("a session that Claude Code does not have is not found", async () => {
    await expect(adopt()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  it("a session of another principal is not found on disk, even for a fork", async () => {
    const theirs = await a.openIdle({}, "eve");
    a.runtime.found.set(theirs, { cwd: "/repo" });
    const refused = { code: "SESSION_NOT_FOUND" };
    await expect(adopt({ sessionId: theirs })).rejects.toMatchObject(refused);
    await expect(adopt({ sessionId: theirs, fork: true })).rejects.toMatchObject(refused);
  });

  it("a session from disk needs `cwd` if Claude Code does not know its folder", async () => {
    a.runtime.found.set(ELSEWHERE, { cwd: undefined });
    const refused = { code: "INVALID_ARGUMENT", message: expect.stringContaining("cwd: is unknown") as string };
    await expect(adopt()).rejects.toMatchObject(refused);
    await adopt({ options: { cwd: "/other" } });
    expect((await a.engine.get("local", ELSEWHERE)).spec.cwd).toBe("/other");
  });

  it("a transcript that /clear split off is refused with the name of its session, and may be forked", async () => {
    const id = await a.open();
    a.runtime.lastProcess(id).say({ type: "reported", transcriptId: ELSEWHERE });
    a.runtime.lastProcess(id).finish();
    await a.waitForEvent(id, "turn.ended");
    a.runtime.found.set(ELSEWHERE, { cwd: "/repo" });
    const refused = {
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining(`is a transcript of session ${id}, split off by /clear`) as string,
    };
    await expect(adopt()).rejects.toMatchObject(refused);
    const { sessionId } = await adopt({ fork: true });
    expect((await a.engine.get("local", sessionId)).state.origin).toEqual({ transcriptId: ELSEWHERE });
  });

  const open = { pid: 4712, how: "cli" };
  const busy = {
    code: "SESSION_BUSY",
    sessionId: ELSEWHERE,
    message: `Session ${ELSEWHERE} is open in another Claude Code (process 4712, cli). Close it there, or fork it with forkSession: true.`,
  };

  it("a session that another Claude Code has open is refused, and may be forked", async () => {
    a.runtime.found.set(ELSEWHERE, { cwd: "/repo" });
    a.runtime.openIn = open;
    await expect(adopt()).rejects.toMatchObject(busy);
    expect(a.runtime.processes).toEqual([]);
    await adopt({ fork: true });
    expect(a.runtime.processes).toHaveLength(1);
  });

  it("a session from disk gets no further prompt while another Claude Code has the session open", async () => {
    a.runtime.found.set(ELSEWHERE, { cwd: "/repo" });
    await adopt();
    await a.engine.interrupt("local", ELSEWHERE, "ann");
    a.runtime.lastProcess(ELSEWHERE).kill();
    await a.waitForEvent(ELSEWHERE, "process.exited");
    a.runtime.openIn = open;
    await expect(a.engine.prompt("local", ELSEWHERE, prompt)).rejects.toMatchObject(busy);
    expect(a.runtime.processes).toHaveLength(1);
  });
});

describe("a rename", () => {
  it.each([
    [1, "renamed"],
    [4, "renamed"],
    [5, undefined],
  ])("a rename that meets %i other changes of the row leaves the title %s", async (conflicts, title) => {
    let left = conflicts;
    const c = world.connect("c", (backend) => ({
      rows: {
        update: async (...args) =>
          left-- > 0 ? Promise.reject(new ConflictError("changed")) : backend.rows.update(...args),
      },
    }));
    const id = await c.open();
    await c.waitForEvent(id, "process.started");
    await c.engine.rename("local", id, "renamed").catch((error: unknown) => {
      if (!(error instanceof ConflictError)) throw error;
    });
    expect((await c.engine.get("local", id)).title).toBe(title);
  });

  it("a rename that the store refuses for another reason is not tried again", async () => {
    let tries = 0;
    const update = async () => Promise.reject(new Error(`disk full, try ${String(++tries)}`));
    const c = world.connect("c", () => ({ rows: { update } }));
    await expect(c.engine.rename("local", await c.open(), "x")).rejects.toThrow("disk full, try 1");
  });
});

describe("deletion of a session", () => {
  it("a session with a running turn is not deleted", async () => {
    const id = await a.open();
    await expect(a.engine.delete("local", id, "ann")).rejects.toMatchObject({ code: "SESSION_BUSY", sessionId: id });
    expect((await a.engine.get("local", id)).state.closed).toBeUndefined();
  });

  it("a deleted session stays, closed, if its process does not end within 10 s", async () => {
    const id = await a.openIdle();
    a.runtime.lastProcess(id).stop = () => undefined;
    const deleted = a.engine.delete("local", id, "ann").catch((error: unknown) => error);
    await a.waitForEvent(id, "session.closed");
    await world.clock.pass(15_000);
    const message = "Its process has not ended yet. Try again in a moment.";
    expect(await deleted).toMatchObject({ code: "SESSION_BUSY", message });
    expect((await a.engine.get("local", id)).state.closed).toMatchObject({ reason: "closed" });
  });
});
