import { afterEach, describe, expect, it } from "vitest";
import { NoAnswerError } from "../../src/engine/ports.ts";
import type { SessionBackend } from "../../src/engine/ports.ts";
import { LEASE_MS, twoNodes, type World } from "../kit/step/two-nodes.ts";

/** A command to a session of another server that does not answer. */

let world: World;
afterEach(() => world.close());

type Send = SessionBackend["inbox"]["send"];

/** A session of node a, and a node whose commands reach no one, each try of which takes 3 s. */
async function unheard(send?: Send) {
  world = twoNodes();
  const { a, clock } = world;
  const tries: string[] = [];
  const lost: Send = async (_, { id }) => {
    tries.push(id);
    await clock.pass(3000);
    throw new NoAnswerError("no answer");
  };
  const c = world.connect("c", () => ({ inbox: { send: send ?? lost } }));
  return { ...world, c, id: await a.asked(), tries };
}

describe("a command whose owner lives and does not answer", () => {
  it("is tried again under its id, and fails after 15 s", async () => {
    const { a, c, id, tries } = await unheard();
    const refused = { code: "TIMEOUT", sessionId: id };
    await expect(c.engine.interrupt("local", id, "ann")).rejects.toMatchObject(refused);
    expect(tries).toHaveLength(5);
    expect(new Set(tries).size).toBe(1);
    expect(a.runtime.of(id).calls).toEqual(["push begin"]);
  });

  it("fails at once with another fault of the store", async () => {
    const { c, id } = await unheard(async () => Promise.reject(new Error("disk full")));
    await expect(c.engine.interrupt("local", id, "ann")).rejects.toThrow("disk full");
  });

  it("is carried out by the next owner if its owner has died meanwhile", async () => {
    const { a, c, clock, id } = await unheard(async () => {
      a.die();
      clock.advance(LEASE_MS);
      return Promise.reject(new NoAnswerError("no answer"));
    });
    await c.engine.close("local", id, "ann");
    expect((await c.engine.get("local", id)).state.closed).toMatchObject({ reason: "closed" });
    expect(await c.story(id)).toMatch(/turn\.ended .*session\.closed/);
  });
});

it("a command to a session that was deleted meanwhile says that there is none", async () => {
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
  const id = await world.a.asked();
  await expect(c.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
});
