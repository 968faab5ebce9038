import { describe, expect, it, vi } from "vitest";
import { LazyStart } from "../../src/app/lazy-start.ts";

/** Builds a `LazyStart` whose start the test completes with `resolve` or fails with `reject`. */
function starting() {
  let [resolve, reject]: [(started: string) => void, (error: Error) => void] = [
    vi.fn<() => void>(),
    vi.fn<() => void>(),
  ];
  const outcome = new Promise<string>((...settle) => ([resolve, reject] = settle));
  const start = vi.fn<(how?: string) => Promise<string>>(async () => outcome);
  return { readiness: new LazyStart<string, string>(start), start, resolve, reject };
}

describe("readiness", () => {
  it("`ready` shares one start among all callers, triggered by the first", async () => {
    const { readiness, resolve, start } = starting();
    const waiting = [readiness.ready("over HTTP"), readiness.ready()];
    resolve("engine");
    expect(await Promise.all([...waiting, readiness.ready()])).toEqual(["engine", "engine", "engine"]);
    expect(start.mock.calls.map(([how]) => how)).toEqual(["over HTTP"]);
  });

  it("`get` refuses a caller before the start is complete, and starts nothing", async () => {
    const { readiness, resolve, start } = starting();
    const refusal = expect.objectContaining({
      code: "INTERNAL",
      message: "The server is starting. Try again in a moment.",
    });
    expect(() => readiness.get()).toThrow(refusal);
    expect(start).not.toHaveBeenCalled();
    const ready = readiness.ready();
    expect(() => readiness.get()).toThrow(refusal);
    expect(readiness.now).toBeUndefined();
    resolve("engine");
    await ready;
    expect([readiness.get(), readiness.now]).toEqual(["engine", "engine"]);
  });

  it("a failed start is reported to all waiting callers, and tried again for the next one", async () => {
    const start = vi.fn<() => Promise<string>>(async () => Promise.resolve("engine"));
    start.mockRejectedValueOnce(new Error("no folder"));
    const readiness = new LazyStart(start);
    const outcomes = await Promise.allSettled([readiness.ready(), readiness.ready()]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(readiness.now).toBeUndefined();
    expect(await readiness.ready()).toBe("engine");
    expect(start).toHaveBeenCalledTimes(2);
  });

  it("`end` resolves with the started engine, even if the start still runs", async () => {
    const { readiness, resolve } = starting();
    const ready = readiness.ready();
    const ended = readiness.end();
    resolve("engine");
    expect(await Promise.all([ready, ended])).toEqual(["engine", "engine"]);
    expect(await readiness.ready()).toBe("engine");
  });

  it("`end` aborts a start that still runs", async () => {
    const readiness = new LazyStart<string>(
      async (_, over) => new Promise((resolve) => over.addEventListener("abort", () => resolve("given up"))),
    );
    const ready = readiness.ready();
    expect(await Promise.all([readiness.end(), ready])).toEqual(["given up", "given up"]);
  });

  it("`end` resolves with nothing if the start fails", async () => {
    const { readiness, reject } = starting();
    const ready = readiness.ready();
    const ended = readiness.end();
    reject(new Error("no folder"));
    await expect(ready).rejects.toThrow("no folder");
    expect(await ended).toBeUndefined();
  });

  it("`ready` starts nothing after `end`", async () => {
    const { readiness, start } = starting();
    expect(await readiness.end()).toBeUndefined();
    await expect(readiness.ready()).rejects.toThrow("shutting down");
    expect(start).not.toHaveBeenCalled();
  });
});
