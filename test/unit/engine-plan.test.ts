import { afterEach, beforeEach, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { initialState } from "../../src/domain/session.ts";
import { OPTIONS, type TestNode, twoNodes, type World } from "../kit/step/two-nodes.ts";
import { T0 } from "../kit/step/walk.ts";

/** Counts the plans of the runtime for each start. */

let world: World;
let a: TestNode;
beforeEach(() => {
  world = twoNodes();
  ({ a } = world);
});
afterEach(() => world.close());

const ELSEWHERE = "11111111-1111-4111-8111-111111111111";
const prompt = { text: "go on" };

const STARTS: [start: string, go: (id: string) => Promise<unknown>][] = [
  ["a new session", async () => a.open()],
  ["a session without a prompt", async () => a.engine.create(LOCAL_CALLER, OPTIONS)],
  ["a prompt", async (id) => a.engine.prompt("local", id, prompt)],
  ["a prompt at another server", async (id) => world.b.engine.prompt("local", id, prompt)],
  ["a copy", async (id) => a.engine.fork(LOCAL_CALLER, id, prompt)],
  ...[false, true].map((fork): [string, () => Promise<unknown>] => [
    fork ? "a copy of a session from disk" : "a session from disk",
    async () => a.engine.adopt(LOCAL_CALLER, { sessionId: ELSEWHERE, fork, options: {}, prompt }),
  ]),
];

it.each(STARTS)("%s is planned once by the server that takes it", async (_, go) => {
  a.runtime.found.set(ELSEWHERE, { cwd: "/repo" });
  const id = await a.openIdle();
  const before = a.runtime.plans + world.b.runtime.plans;
  await go(id);
  expect(a.runtime.plans + world.b.runtime.plans - before).toBe(1);
});

it("a retry that finds its session without a prompt plans the session again, as it was created", async () => {
  const first = await a.backend.rows.create({
    id: "s",
    principal: "local",
    spec: OPTIONS,
    state: initialState(T0),
    at: T0,
    idempotencyKey: "k",
  });
  expect(first.created).toBe(true);
  expect(await a.open("begin", "k")).toBe("s");
  expect(a.runtime.plans).toBe(2);
  expect(a.runtime.lastProcess("s").calls).toEqual(["push begin"]);
});

it("a session under a rule that this server cannot read gets no prompt here, and no copy", async () => {
  const { policy } = await a.engine.get("local", await a.openIdle());
  const rules = { ...policy!.rules, deny: ["Bash("] };
  const row = {
    id: "s",
    principal: "local",
    spec: OPTIONS,
    policy: { ...policy!, rules },
    state: initialState(T0),
    at: T0,
  };
  await a.backend.rows.create(row);
  const refused = { code: "PERMISSION_DENIED", message: expect.stringContaining("rule Bash(, which") as string };
  await expect(a.engine.prompt("local", "s", prompt)).rejects.toMatchObject(refused);
  await expect(a.engine.fork(LOCAL_CALLER, "s", prompt)).rejects.toMatchObject(refused);
});
