import { afterEach, describe, expect, it, vi } from "vitest";
import { createHealth, type HealthOptions } from "../../src/http/health.ts";

afterEach(() => vi.useRealTimers());

const health = (over: Partial<HealthOptions> = {}) =>
  createHealth({ version: "1.2.3", busyWith: () => undefined, readStore: async () => Promise.resolve(), ...over });

const statusAndBody = async (response: Response) => ({ status: response.status, body: await response.json() });
const unready = (reason: string) => ({ status: 503, body: { status: "unready", reason } });

describe("health", () => {
  it("the server is alive even while it is draining", async () => {
    const live = health({ busyWith: () => "draining" }).live();
    expect(live.headers.get("cache-control")).toBe("no-store");
    expect(await statusAndBody(live)).toEqual({
      status: 200,
      body: { status: "ok", version: "1.2.3", uptimeSeconds: expect.any(Number) as number },
    });
  });

  it("the server is ready if it accepts work and can read the store", async () => {
    expect(await statusAndBody(await health().ready())).toEqual({ status: 200, body: { status: "ready" } });
  });

  it.each(["starting", "draining"] as const)(
    "the server is not ready while it is %s, and does not query the store",
    async (reason) => {
      const readStore = vi.fn<HealthOptions["readStore"]>();
      expect(await statusAndBody(await health({ busyWith: () => reason, readStore }).ready())).toEqual(unready(reason));
      expect(readStore).not.toHaveBeenCalled();
    },
  );

  it("the server is not ready if draining begins while the store is read", async () => {
    let busy: "draining" | undefined;
    const readStore = async () => Promise.resolve().then(() => (busy = "draining"));
    expect(await statusAndBody(await health({ busyWith: () => busy, readStore }).ready())).toEqual(unready("draining"));
  });

  it("the server is not ready if the store cannot be read, and does not reveal why", async () => {
    const readStore = async () => Promise.reject(new Error("/home/ann/store.db is locked"));
    expect(await statusAndBody(await health({ readStore }).ready())).toEqual(unready("store"));
  });

  it("the server is not ready if the store does not answer within 2 s", async () => {
    vi.useFakeTimers();
    const answer = health({ readStore: async () => new Promise(() => undefined) }).ready();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await statusAndBody(await answer)).toEqual(unready("store"));
  });
});
