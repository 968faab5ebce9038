import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

import { openDesk, type Desk } from "../kit/browser/desk.ts";
import { openWindow, type OpenWindow } from "../kit/browser/window.ts";

/** Tests of the test kit: every fault in a window is noticed. */

let desk: Desk;
let window: OpenWindow;
beforeAll(async () => {
  desk = await openDesk();
  // Opened without `desk`, which would throw for the faults in this window.
  window = await openWindow(desk.browser, desk.http, {});
});
beforeEach(async () => {
  await window.page.reload();
  await window.page.getByRole("heading", { level: 1 }).waitFor();
  // Removes the faults of the previous test from `troubles`.
  window.troubles.length = 0;
});
afterAll(async () => desk.close());

it.each([
  ["an error of the page", 'setTimeout(() => { throw new Error("broken"); })', /^error: .*broken/],
  ["a console message of the page", 'console.error("it complains")', /^console: it complains/],
  [
    "code in the page",
    'const s = document.createElement("script"); s.textContent = "1"; document.body.append(s)',
    /TrustedScript/,
  ],
  ["HTML that is made of text", 'document.body.insertAdjacentHTML("beforeend", "<b>x</b>")', /TrustedHTML/],
  [
    "code in an attribute",
    'document.body.setAttribute("onclick", "1"); document.body.click()',
    /[Tt]rusted ?[Ss]cript|inline/,
  ],
  ["a request to another origin", 'void fetch("https://evil.example/").catch(() => 0)', /connect-src/],
  ["a picture of another origin", 'new Image().src = "https://evil.example/x.png"', /img-src/],
  ["a question of the browser", 'setTimeout(() => alert("hello"))', /^dialog: hello/],
  ["a file that is not there", 'void fetch("api/none").catch(() => 0)', /status of 404/],
])("%s is noticed", async (_, code, trouble) => {
  const { page, troubles } = window;
  expect(troubles).toEqual([]);
  await page.evaluate(code).catch(() => undefined);
  await expect.poll(() => troubles.join("\n")).toMatch(trouble);
});

it("violations that axe reports and content wider than the window are noticed", async () => {
  const { page } = window;
  expect([await window.violations(), await window.overhang()]).toEqual([[], 0]);
  await page.evaluate(`{
    const button = document.createElement("button");
    button.style.width = "3000px";
    document.querySelector("main").append(button);
  }`);
  expect((await window.violations()).join("\n")).toContain("button-name");
  expect(await window.overhang()).toBeGreaterThan(1_000);
});
