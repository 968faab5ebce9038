import { duplexPair, type Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { operationsThrough, performOperations, withOperations, type Operations } from "../../src/daemon/operations.ts";
import { AppError } from "../../src/domain/error.ts";
import { FakeEngine } from "../kit/tools/fake-engine.ts";

/** Operations that `operationsThrough` leaves to a daemon give the results and errors of local calls. */

function daemonWith(operations: Operations, faults: unknown[] = []) {
  const ends: Duplex[] = [];
  const connect = async () => {
    const [theirs, ours] = duplexPair();
    ends.push(ours);
    void performOperations({ stdin: ours, stdout: ours }, operations, (error) => faults.push(error));
    return Promise.resolve(theirs);
  };
  return { ends, faults, own: operationsThrough(connect) };
}

describe("an operation that a daemon performs", () => {
  it("two calls at once get the results for their own arguments", async () => {
    const engine = new FakeEngine();
    engine.partial = async (...[sessionId]: string[]) =>
      new Promise((resolve) => setTimeout(() => resolve(`of ${sessionId ?? ""}`), sessionId === "slow" ? 20 : 0));
    const { own } = daemonWith(engine);
    expect(await Promise.all([own.partial("slow"), own.partial("fast")])).toEqual(["of slow", "of fast"]);
  });

  it("an `AppError` of the daemon is thrown unchanged; any other error only refers to the daemon's log", async () => {
    const engine = new FakeEngine();
    const { faults, own } = daemonWith(engine);
    engine.rename = async () => Promise.reject(new AppError("SESSION_BUSY", "A turn is running.", { sessionId: "s" }));
    await expect(own.rename("local", "s", "x")).rejects.toMatchObject({ code: "SESSION_BUSY", sessionId: "s" });
    engine.rename = async () => Promise.reject(new TypeError("secret of x"));
    await expect(own.rename("local", "s", "x")).rejects.toThrow("The daemon failed. See its log.");
    expect(faults).toHaveLength(1);
  });

  it("an open call fails when the daemon ends, and the next call goes to the next daemon", async () => {
    const engine = new FakeEngine();
    const { ends, own } = daemonWith(engine);
    engine.rename = async () => new Promise(() => undefined);
    const open = own.rename("local", "s", "x");
    await expect.poll(() => ends.length).toBe(1);
    ends[0]?.end();
    await expect(open).rejects.toThrow("has ended");
    expect(await own.partial("s")).toBe("");
    expect(ends).toHaveLength(2);
  });

  it("a call fails with the reason if no daemon is available", async () => {
    const own = operationsThrough(async () => Promise.reject(new Error("no luck")));
    await expect(own.partial("s")).rejects.toThrow("No daemon is available: no luck.");
  });
});

it("a process that leaves its changes to a daemon reads by itself", async () => {
  const [here, there] = [new FakeEngine(), new FakeEngine()];
  here.list = async () => Promise.resolve([]);
  here.rename = async () => Promise.reject(new Error("not here"));
  let renamed = "";
  there.rename = async (...[, , title]: string[]) => {
    renamed = title ?? "";
    return Promise.resolve();
  };
  const engine = withOperations(here, daemonWith(there).own).forCaller({ scopes: ["read", "run"] });
  expect(await engine.list({ principal: "local", limit: 1 })).toEqual([]);
  await engine.rename("local", "s", "new");
  expect(renamed).toBe("new");
});
