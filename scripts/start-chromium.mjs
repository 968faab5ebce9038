// One Chromium for all browser tests: vitest calls setup() before the project "browser", and teardown() after it.
import { chromium } from "playwright-core";
import { chromium as findChromium } from "./install-chromium.mjs";

let server;

/** Tests get its address by inject("chromium"). */
export async function setup({ provide }) {
  server = await chromium.launchServer({ executablePath: findChromium() });
  provide("chromium", server.wsEndpoint());
}

export async function teardown() {
  await server?.close();
}
