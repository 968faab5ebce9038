import { EventEmitter } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import type { ConsoleApi } from "../../src/console/api.ts";
import { mountConsole } from "../../src/console/routes.ts";
import { createPage } from "../../src/console/page.ts";
import type { Env } from "../../src/http/http-app.ts";

/** The console's routes without a server behind them. */

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** `live` fills the stream. */
function mounted(live: ReturnType<ConsoleApi["live"]>): Hono<Env> {
  const app = new Hono<Env>();
  mountConsole(app, {
    api: { routes: [], live: () => live, findRequest: undefined as never },
    page: async () => Promise.resolve(undefined),
    requests: undefined as never,
    links: undefined,
    linkedRequests: undefined as never,
    authenticate: async () => Promise.resolve({ caller: { principal: "ann", scopes: ["read"] }, kind: "token" }),
    publicUrl: () => "http://127.0.0.1:1",
    maxBodyBytes: 1000,
    audit: undefined,
    leaving: new AbortController().signal,
    log: { warn: () => undefined },
  });
  return app;
}

describe("live streams", () => {
  it.each(["GET", "HEAD"])(
    "a stream of a %s without a reader ends with its connection, however much is left to send",
    async (method) => {
      const outgoing = new EventEmitter();
      let end: (method: string) => void = () => undefined;
      const ended = new Promise<string>((resolve) => (end = resolve));
      const app = mounted(async (send, signal) => {
        while (!signal.aborted) await send("partial", { text: "x".repeat(1_000) });
        end(method);
      });
      await app.request("/console/api/live", { method }, { outgoing });
      outgoing.emit("close");
      expect(await ended).toBe(method);
    },
  );
});

it("the page is available once its files can be read, even after a failed request", async () => {
  const folder = join(mkdtempSync(join(tmpdir(), "ccm-page-")), "console");
  folders.push(join(folder, ".."));
  const page = createPage(folder);
  const request = new Request("http://127.0.0.1/console/");
  await expect(page(request, "")).rejects.toThrow("ENOENT");
  mkdirSync(folder);
  writeFileSync(join(folder, "index.html"), "<p>Here.</p>");
  const answer = await page(request, "");
  expect(await answer?.text()).toBe("<p>Here.</p>");
});
