// Starts a Chromium for all browser tests. vitest calls `setup()` before the project "browser", and `teardown()` after the
// project.
import { chromium } from "playwright-core";
import { chromium as findChromium } from "./install-chromium.mjs";

let server;

/** Provides the address to tests: `inject("chromium")`. */
export async function setup({ provide }) {
  server = await chromium.launchServer({ executablePath: findChromium() });
  provide("chromium", server.wsEndpoint());
}

export async function teardown() {
  await server?.close();
}
