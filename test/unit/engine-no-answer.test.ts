import { afterEach, describe, expect, it } from "vitest";
import { NoAnswerError } from "../../src/engine/ports.ts";
import type { SessionBackend } from "../../src/engine/ports.ts";
import { LEASE_MS, twoNodes, type World } from "../kit/step/two-nodes.ts";

/** Commands to a session of another server whose inbox does not answer. */

let world: World;
afterEach(() => world.close());

type Send = SessionBackend["inbox"]["send"];

/** Starts a session of node a, and a node c whose commands reach no owner; each try takes 3 s. */
async function startUnreachable(send?: Send) {
  world = twoNodes();
  const { a, clock } = world;
  const tries: string[] = [];
  const lost: Send = async (_, { id }) => {
    tries.push(id);
    await clock.pass(3000);
    throw new NoAnswerError("no answer");
  };
  const c = world.connect("c", () => ({ inbox: { send: send ?? lost } }));
  return { ...world, c, id: await a.openWithRequest(), tries };
}

describe("a command whose owner lives and does not answer", () => {
  it("a command without an answer is tried again under its id, and fails after 15 s", async () => {
    const { a, c, id, tries } = await startUnreachable();
    const refused = { code: "TIMEOUT", sessionId: id };
    await expect(c.engine.interrupt("local", id, "ann")).rejects.toMatchObject(refused);
    expect(tries).toHaveLength(5);
    expect(new Set(tries).size).toBe(1);
    expect(a.runtime.lastProcess(id).calls).toEqual(["push begin"]);
  });

  it("a command fails at once on any other error of the store", async () => {
    const { c, id } = await startUnreachable(async () => Promise.reject(new Error("disk full")));
    await expect(c.engine.interrupt("local", id, "ann")).rejects.toThrow("disk full");
  });

  it("a command is carried out by the next owner if its owner dies meanwhile", async () => {
    const { a, c, clock, id } = await startUnreachable(async () => {
      a.die();
      clock.advance(LEASE_MS);
      return Promise.reject(new NoAnswerError("no answer"));
    });
    await c.engine.close("local", id, "ann");
    expect((await c.engine.get("local", id)).state.closed).toMatchObject({ reason: "closed" });
    expect(await c.story(id)).toMatch(/turn\.ended .*session\.closed/);
  });
});

it("a command to a session that was deleted meanwhile fails with SESSION_NOT_FOUND", async () => {
  let isDeleted = false;
  world = twoNodes();
  const c = world.connect("c", (backend) => ({
    inbox: {
      send: async () => {
        isDeleted = true;
        return Promise.reject(new NoAnswerError("no answer"));
      },
    },
    rows: { get: async (id) => (isDeleted ? undefined : backend.rows.get(id)) },
  }));
  const id = await world.a.openWithRequest();
  await expect(c.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
});
