import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { cards, entry, shownEventIds } from "../kit/browser/cards.ts";
import { addSession, id, NOW, promptEvent, assistantEvent } from "../kit/clients/sessions-command.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";
import { PHONE, type OpenWindow } from "../kit/browser/window.ts";

/** Scroll positions: sessions that wait for an answer, and the ends of long sessions. */

const LONG = id(1);
const EVENTS = 2_000;

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk({
    async seeded(node) {
      const events = [
        promptEvent("Take many steps."),
        ...Array.from({ length: EVENTS - 1 }, (_, at) => assistantEvent(`Step ${String(at + 2)}.`)),
      ];
      await addSession(node, LONG, { at: NOW, events });
    },
  });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

const boxOf = async (of: Locator) => (await of.boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
/** Distance of the card's top from the sticky head above it, px. */
const belowHead = async (page: Page, card: Locator) => {
  const head = await boxOf(page.locator(".session-head"));
  return (await boxOf(card)).y - (head.y + head.height);
};
const isAtTop = async (page: Page, card: Locator) => {
  const distance = await belowHead(page, card);
  return distance >= 0 && distance < 40;
};

const options = Array.from({ length: 6 }, (_, at) => ({
  label: `Way ${String(at)}`,
  description: "One of many ways.",
}));
const questions = ["First?", "Second?", "Third?"].map((question) => ({
  question,
  header: "Way",
  multiSelect: false,
  options,
}));
const ASKING: readonly (readonly [string, { name: string; input: Record<string, unknown> }])[] = [
  ["questions", { name: "AskUserQuestion", input: { questions } }],
  ["a long file", { name: "Write", input: { file_path: "long.txt", content: "A line.\n".repeat(120) } }],
];

it("a waiting session opens at the top of its card, and a new request scrolls a reader at the end to its top", async () => {
  const words = Array.from({ length: 30 }, (_, at) => `Paragraph ${String(at)}.`).join("\n\n");
  for (const [name, tool] of ASKING) {
    const gate = `ask ${name}`;
    const script = [{ text: words, gateBefore: gate, tools: [tool] }, { text: "Over." }];
    const session = await desk.api.start(`Ask. ${scriptTag(script)}`, desk.world.folder());
    const before: OpenWindow = await desk.open({ hash: `#/sessions/${session}` });
    await before.page.getByText("Ask.").first().waitFor();
    desk.world.model.release(gate);
    await desk.api.asked(session);
    const windows = [
      before,
      ...(await Promise.all(
        [{}, { viewport: PHONE }].map(async (as) => desk.open({ ...as, hash: `#/sessions/${session}` })),
      )),
    ];
    for (const [at, { page, ...window }] of windows.entries()) {
      const card = cards(page);
      await card.waitFor();
      await expect.poll(async () => isAtTop(page, card)).toBe(true);
      await window.picture(`asking-top-${name.replaceAll(" ", "-")}-${String(at)}`, false);
      // A reader who scrolls to the end stays there.
      await page.keyboard.press("End");
      await expect.poll(async () => belowHead(page, card)).toBeLessThan(0);
    }
    await desk.api.post(`sessions/${session}/reply`, { prompt: "Then this.", whenBusy: "queue" });
    for (const { page } of windows) {
      await page.getByText("Then this.").waitFor();
      expect(await belowHead(page, cards(page))).toBeLessThan(0);
    }
  }
});

it("End and Home go to the ends of the whole session, except while the user types", async () => {
  const { page } = await desk.open({ hash: `#/sessions/${LONG}` });
  await entry(page, `Step ${String(EVENTS)}.`).waitFor();
  await page.keyboard.press("Home");
  await expect.poll(async () => (await shownEventIds(page))[0]).toBe(1);
  await expect.poll(async () => page.evaluate("scrollY")).toBe(0);
  await page.keyboard.press("End");
  await entry(page, `Step ${String(EVENTS)}.`).waitFor();
  const below = async () => page.evaluate<number>("document.documentElement.scrollHeight - innerHeight - scrollY");
  await expect.poll(below).toBeLessThan(3);
  await page.getByLabel("Prompt").fill("Not sent.");
  await page.keyboard.press("Home");
  await page.keyboard.type("This is ");
  expect(await page.getByLabel("Prompt").inputValue()).toBe("This is Not sent.");
  expect(await below()).toBeLessThan(3);
});
