import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import { cards, press } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";
import { PHONE } from "../kit/browser/window.ts";
import { LinkUser, longWrite } from "../kit/people/link-user.ts";

/** Page of one request, opened on a phone by the link of a client. */

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk();
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

it("a link opens its request alone on a phone, whole and once; the answer there ends the wait of the client", async () => {
  const user = new LinkUser();
  const client = await user.connect(desk.http);
  const file = join(desk.world.folder(), "long.txt");
  const call = client.call("claude_code", { prompt: longWrite(file), cwd: join(file, ".."), waitMs: 40_000 });
  const url = await user.link();
  // Opened in a tab that shows the console, where the address changes in its fragment alone.
  const window = await desk.open({ token: "", viewport: PHONE, hasTouch: true });
  const { page } = window;
  await page.goto(url);
  await page.getByRole("heading", { name: "Request of Claude Code" }).waitFor();
  const card = cards(page, "Claude Code asks to write a file");
  await card.getByText("line 299 of the file").waitFor();
  expect(page.url()).toBe(`${desk.http.origin}/console/#/request`);
  expect(await page.getByRole("navigation").count()).toBe(0);
  expect(await page.getByRole("link").count()).toBe(0);
  expect(await card.getByRole("button").allTextContents()).toEqual([
    "Allow",
    "Allow for session",
    "Deny…",
    "Edit input…",
  ]);
  expect(await window.overhang()).toBe(0);
  expect(await window.violations()).toEqual([]);
  await window.picture("request-page");
  await page.reload();
  await card.getByText("line 299 of the file").waitFor();
  const second = await desk.open({ token: "", viewport: PHONE });
  second.allowFailures(/status of 410 /);
  await second.page.goto(url);
  await second.page.getByText("The link works once, and was opened before.").waitFor();
  expect(await second.violations()).toEqual([]);
  expect(existsSync(file)).toBe(false);
  window.allowFailures(/status of 410 /);
  await press(card, "Allow", page.getByText("You can close this page."));
  expect(await call).toMatchObject({ status: "idle", result: { result: "Over." } });
  expect(existsSync(file)).toBe(true);
  await second.page.goto(`${desk.http.origin}/console/?again${new URL(url).hash}`);
  await second.page.getByText(/^The request is no longer open: allowed /).waitFor();
});
