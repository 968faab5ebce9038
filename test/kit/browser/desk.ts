import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser } from "playwright-core";
import { expect, inject, type TestContext } from "vitest";

import type { SessionBackend } from "../../../src/engine/ports.ts";
import type { HttpServer } from "../servers/http-server.ts";
import { signIn, type Signed } from "../clients/console-client.ts";
import { seed } from "../clients/sessions-command.ts";
import { createWorld, type AgentKind, type World } from "../world.ts";
import { openWindow, PICTURES, type OpenWindow, type WindowOptions } from "./window.ts";

/** The workplace of a user in these tests: a world with the built server over HTTP, and the Chromium that all tests share. */
export interface Desk {
  readonly world: World;
  readonly browser: Browser;
  /** The current server. */
  readonly http: HttpServer;
  /** The API as the operator asks it, without a browser. */
  readonly api: Signed;
  /** A window of a browser of its own, signed in unless `token` is "". */
  open(options?: WindowOptions): Promise<OpenWindow>;
  /** Changes the store beside the server, as another server on it does. */
  change(work: (node: SessionBackend) => Promise<void>): Promise<void>;
  /** Restarts the server, at the same port and on the same store; resolves when it is ready. */
  comeBack(): Promise<void>;
  /** Closes all windows; throws the faults in them. A failed test leaves pictures behind. */
  clear(test: TestContext): Promise<void>;
  close(): Promise<void>;
}

declare module "vitest" {
  interface ProvidedContext {
    /** The address of the browser: scripts/start-chromium.mjs. */
    chromium: string;
  }
}

interface DeskOptions {
  /** Which Claude Code its sessions have: the stand-in, unless the test is about what the real one does. */
  readonly agent?: AgentKind;
  readonly args?: string[];
  /** Fills the store before the server starts. */
  readonly seeded?: (node: SessionBackend) => Promise<void>;
}

/** With the approvals that a server over HTTP has unless told otherwise. */
export async function openDesk({ agent = "stand-in", args = [], seeded }: DeskOptions = {}): Promise<Desk> {
  mkdirSync(PICTURES, { recursive: true });
  const world = await createWorld({ agent });
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
