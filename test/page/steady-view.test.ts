import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import type { EventPage } from "../../src/console/wire.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { addSession, id, NOW, promptEvent, assistantEvent } from "../kit/clients/sessions-command.ts";
import { entry } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";
import { PHONE } from "../kit/browser/window.ts";

/** The page keeps its place when its window changes, and when the user or the server returns. Short waits are not shown. */

const READ = id(1);
const SESSIONS = 70;
const words = (at: number) =>
  assistantEvent(
    `Step ${String(at)}: ${Array.from({ length: 60 }, (_, word) => `w${String(at)}-${String(word)}`).join(" ")}`,
  );

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk({
    args: ["--max-live", "1"],
    async seeded(node) {
      const events = [promptEvent("Tell me."), ...Array.from({ length: 60 }, (_, at) => words(at))];
      await addSession(node, READ, { at: NOW + 1_000, events });
      for (let each = 2; each <= SESSIONS; each++)
        await addSession(node, id(each), {
          at: NOW - each * 60_000,
          events: [promptEvent(`Job number ${String(each)}.`)],
        });
    },
  });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

/** Distance of the end below the view, px. */
const below = async (page: Page) =>
  page.evaluate<number>("document.documentElement.scrollHeight - innerHeight - scrollY");
/** Returns the word at the top of the view. */
const wordAtTop = async (page: Page) =>
  page.evaluate<string>(`{
    const head = document.querySelector(".session-head").getBoundingClientRect().bottom;
    const { offset, offsetNode } = document.caretPositionFromPoint(document.querySelector(".timeline-timeline").getBoundingClientRect().left + 60, Math.max(head, 60) + 14);
    offsetNode.data.slice(0, offset + 8).match(/\\S+(?=\\s+\\S*$)/)[0];
  }`);
const topOfWord = async (page: Page, word: string) =>
  page.evaluate<number>(`{
    const walk = document.createTreeWalker(document.querySelector(".timeline-timeline"), NodeFilter.SHOW_TEXT);
    let top = NaN;
    while (walk.nextNode()) {
      const at = walk.currentNode.data.indexOf(${JSON.stringify(`${word} `)});
      if (at < 0) continue;
      const range = document.createRange();
      range.setStart(walk.currentNode, at);
      range.setEnd(walk.currentNode, at + 1);
      top = range.getBoundingClientRect().top;
    }
    top;
  }`);

/** Adds a session at the top of the list. */
const addNewest = async (number: number) =>
  desk.change(async (node) =>
    addSession(node, id(number), { at: Date.now(), events: [promptEvent(`Job number ${String(number)}.`)] }),
  );

const isBetween = (value: number, least: number, most: number) => value > least && value < most;

const TURNED = { width: PHONE.height, height: PHONE.width };

it("a reader at the end stays there at any window size, and a reader of a line keeps that line", async () => {
  const window = await desk.open({ viewport: PHONE, hash: `#/sessions/${READ}` });
  const { page } = window;
  await entry(page, "Step 59:").waitFor();
  await expect.poll(async () => below(page)).toBeLessThan(3);
  const sizes = [
    TURNED,
    PHONE,
    { width: 1_280, height: 900 },
    { width: 700, height: 900 },
    { width: 700, height: 420 },
  ];
  for (const size of sizes) {
    await page.setViewportSize(size);
    await expect.poll(async () => below(page)).toBeLessThan(3);
  }
  await page.setViewportSize(PHONE);
  // A scroll before the page has settled would be reset to the end.
  await expect.poll(async () => below(page)).toBeLessThan(3);
  const scrolled = async () => {
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)");
    return page.getByRole("button", { name: /^To the end/ }).isVisible();
  };
  await expect.poll(scrolled).toBe(true);
  const word = await wordAtTop(page);
  for (const size of [TURNED, PHONE, { width: 1_280, height: 900 }, { width: 700, height: 900 }]) {
    await page.setViewportSize(size);
    await expect.poll(async () => isBetween(await topOfWord(page, word), 30, 260)).toBe(true);
  }
  await window.picture("staying-line", false);
  // An on-screen keyboard opens while the user types.
  await page.setViewportSize(PHONE);
  await page.getByLabel("Prompt").focus();
  await page.setViewportSize({ width: PHONE.width, height: 380 });
  const shown = async () => {
    const { height = 0, y = -1 } = (await page.getByLabel("Prompt").boundingBox()) ?? {};
    return y >= 0 && y + height <= 370;
  };
  await expect.poll(shown).toBe(true);
});

it("the list is fetched once when the page loads, and a search that the user leaves at once still runs", async () => {
  const { page } = await desk.open();
  const address = page.url();
  // Leaves the page, so that requests of its load are not counted.
  await page.goto("about:blank");
  // When the stream begins, the page fetches a list older than 3 s again: a constant `performance.now` keeps its age at 0.
  await page.addInitScript("performance.now = () => 0");
  const fetched: string[] = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.endsWith("/api/sessions")) fetched.push(searchParams.get("text") ?? "");
  });
  await page.goto(address);
  await page.getByRole("link", { name: "Job number 2." }).waitFor();
  // A new session in the list is the only sign that the stream has begun.
  await addNewest(80);
  await page.getByRole("link", { name: "Job number 80." }).waitFor();
  await page.getByLabel("Search sessions").fill("number 33");
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByRole("heading", { name: "Usage" }).waitFor();
  expect(fetched.filter((text) => text === "")).toHaveLength(1);
  await page.goBack();
  await page.getByRole("link", { name: "Job number 33." }).waitFor();
  expect(await page.getByLabel("Search sessions").inputValue()).toBe("number 33");
  await expect.poll(async () => page.getByRole("listitem").filter({ hasText: "Job number" }).count()).toBe(1);
});

it("going back from a session focuses its row at its present position", async () => {
  const { page } = await desk.open();
  const row = page.getByRole("link", { name: "Job number 40." });
  await row.scrollIntoViewIfNeeded();
  const before = (await row.boundingBox())?.y ?? 0;
  await row.click();
  await entry(page, "Prompt").or(page.getByText("Job number 40.")).first().waitFor();
  await addNewest(81);
  await addNewest(82);
  await page.goBack();
  await page.getByRole("link", { name: "Job number 82." }).waitFor();
  await expect.poll(async () => page.evaluate<string>("document.activeElement.innerText")).toBe("Job number 40.");
  await expect.poll(async () => Math.abs(((await row.boundingBox())?.y ?? 0) - before)).toBeLessThan(3);
});

it("a server that returns after a long time is noticed within two seconds", async () => {
  const window = await desk.open({ hash: "#/approvals" });
  const { page } = window;
  await page.getByText("No open requests.").waitFor();
  await page.clock.install();
  window.allowFailures(/net::ERR_FAILED/);
  let attempts = 0;
  await page.route("**/api/live*", async (route) => {
    attempts++;
    await route.abort();
  });
  // Ends the open stream, as the end of the server does.
  await page.evaluate("dispatchEvent(new Event('online'))");
  await window.go(`#/sessions/${READ}`);
  await expect.poll(() => attempts).toBeGreaterThan(0);
  for (let each = 1; each < 7; each++) {
    await page.clock.runFor(2_000);
    // With unlimited doubling, pauses would be 4 and 8 s by now.
    await expect.poll(() => attempts, { timeout: 4_000 }).toBeGreaterThan(each);
  }
  await page.getByText("The server does not answer.").waitFor();
  await page.unroute("**/api/live*");
  await page.clock.runFor(2_000);
  await page.getByText("The server is back.").waitFor();
});

it("a long wait for a free process is shown in the list and in the session, and a short wait is not", async () => {
  const { api, world } = desk;
  const cwd = world.folder();
  const script = [{ text: "First.", gateBefore: "place" }];
  const first = await api.start(`Be first. ${scriptTag(script)}`, cwd);
  await world.model.waitForRequest(({ sessionId }) => sessionId === first);
  const window = await desk.open();
  const { page } = window;
  await page.getByRole("link", { name: /^Be first\./ }).waitFor();
  const began = Date.now();
  const second = await api.start(`Be second. ${scriptTag([{ text: "Second." }])}`, cwd);
  const row = page.getByRole("listitem").filter({ hasText: "Be second." });
  await row.getByText("waits for a slot (next to start)").waitFor();
  expect(Date.now() - began).toBeGreaterThan(2_000);
  world.model.release("place");
  for (const each of [first, second]) await api.end(each);
  // The second session makes room for the first at once.
  await api.post(`sessions/${first}/reply`, { prompt: scriptTag([{ text: "Again." }]) });
  await window.go(`#/sessions/${first}`);
  await entry(page, "Again.").waitFor();
  const { events } = await api.get<EventPage>(`sessions/${first}/events?from=1`);
  const waited = events.find(({ data, type }) => type === "notice" && "kind" in data && data.kind === "waiting");
  const started = events.findLast(({ type }) => type === "process.started");
  if (!waited || !started) throw new Error("it has not waited");
  const toldOf = entry(page, "this session waits for a free one");
  expect(await toldOf.count()).toBe(started.at - waited.at > 2_000 ? 1 : 0);
  await window.go(`#/sessions/${second}`);
  await toldOf.waitFor();
});

it("250 sessions changed while the server is suspended all appear in a list opened before", async () => {
  const { page } = await desk.open();
  await page.getByRole("link", { name: "Job number 2." }).waitFor();
  desk.http.signal("SIGSTOP");
  try {
    await desk.change(async (node) => {
      for (let each = 1; each <= 250; each++)
        await addSession(node, id(1_000 + each), {
          at: Date.now(),
          events: [promptEvent(`Late number ${String(each)}.`)],
        });
    });
  } finally {
    desk.http.signal("SIGCONT");
  }
  await expect.poll(async () => page.getByRole("link", { name: /^Late number/ }).count()).toBe(250);
});
