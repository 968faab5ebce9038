import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser } from "playwright-core";
import { expect, inject, type TestContext } from "vitest";

import type { RequestList } from "../../../src/console/wire.ts";
import type { SessionBackend } from "../../../src/engine/ports.ts";
import type { HttpServer } from "../servers/http-server.ts";
import { signIn, type ConsoleClient } from "../clients/console-client.ts";
import { seed } from "../clients/sessions-command.ts";
import { createWorld, type AgentKind, type World } from "../world.ts";
import { openWindow, PICTURES, type OpenWindow, type WindowOptions } from "./window.ts";

/** Workplace of a user: a world with the built server over HTTP, and the Chromium that all tests share. */
export interface Desk {
  readonly world: World;
  readonly browser: Browser;
  /** Current server; `comeBack()` replaces it. */
  readonly http: HttpServer;
  /** API of the console as the operator uses it, without a browser. */
  readonly api: ConsoleClient;
  /** Opens a window in a browser context of its own, signed in unless `token` is "". */
  open(options?: WindowOptions): Promise<OpenWindow>;
  /** Changes the store beside the server, like another server on the store. */
  change(work: (node: SessionBackend) => Promise<void>): Promise<void>;
  /** Restarts the server at the same port and on the same store; resolves when ready. */
  comeBack(): Promise<void>;
  /** Closes all windows; throws the faults in them. A failed test leaves pictures in `PICTURES`, but no open request. */
  clear(test: TestContext): Promise<void>;
  close(): Promise<void>;
}

declare module "vitest" {
  interface ProvidedContext {
    /** Address of the browser started by scripts/start-chromium.mjs. */
    chromium: string;
  }
}

interface DeskOptions {
  /** Default: the stand-in. "real" only for tests of the real Claude Code's behavior. */
  readonly agent?: AgentKind;
  readonly args?: string[];
  /** True for sessions paid by a subscription. Default: by a key. */
  readonly plan?: boolean;
  /** Fills the store before the server starts. */
  readonly seeded?: (node: SessionBackend) => Promise<void>;
}

/** Uses the default approvals of a server over HTTP. */
export async function openDesk({
  agent = "stand-in",
  args = [],
  plan = false,
  seeded,
}: DeskOptions = {}): Promise<Desk> {
  mkdirSync(PICTURES, { recursive: true });
  const world = await createWorld({ agent, plan });
  const store = join(world.folder(), "store.db");
  if (seeded) await seed(store, seeded);
  const start = async (address: string) =>
    world.http({ args: ["--store", store, "--caller-approves", "edits", ...args, "--http", address] });
  let http = await start("127.0.0.1:0");
  let api = await signIn(http, http.token);
  const browser = await chromium.connect(inject("chromium"));
  const windows: OpenWindow[] = [];
  return {
    world,
    browser,
    get http() {
      return http;
    },
    get api() {
      return api;
    },
    async open(options = {}) {
      const window = await openWindow(browser, http, options);
      windows.push(window);
      return window;
    },
    change: async (work) => void (await seed(store, work)),
    async comeBack() {
      http = await start(new URL(http.origin).host);
      api = await signIn(http, http.token);
    },
    async clear({ task }) {
      const all = windows.splice(0);
      if (task.result?.state === "fail") {
        const name = `failed ${task.name}`.replaceAll(/[^a-z\d]+/gi, "-").slice(0, 60);
        await Promise.all(all.map(async (each, at) => each.shot(`${name}-${String(at)}`).catch(() => undefined)));
        // A failed test may have stopped the server.
        await endAskingSessions(api).catch(() => undefined);
      }
      await Promise.all(all.map(async ({ context }) => context.close()));
      expect(all.flatMap(({ troubles }) => troubles)).toEqual([]);
    },
    async close() {
      await browser.close();
      await world.close();
    },
  };
}

/** Keeps requests that a failed test has left open from the next test. */
async function endAskingSessions(api: ConsoleClient): Promise<void> {
  const { open } = await api.get<RequestList>("requests");
  const ids = new Set(open.map(({ sessionId }) => sessionId));
  await Promise.all([...ids].map(async (id) => api.post(`sessions/${id}/cancel`)));
}
