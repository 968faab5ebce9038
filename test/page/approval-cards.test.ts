import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import type { SessionDetail } from "../../src/console/wire.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { toolCalls } from "../kit/people/fake-user.ts";
import { cards, entry, press } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";
import { PHONE } from "../kit/browser/window.ts";

/** Cards of requests: requester, place of the buttons, and movement when a request is answered. */

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk({ args: ["--approvals", "user,caller:3600000,console:0"] });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

const bash = (command: string) => ({ name: "Bash", input: { command, description: "Try it" } });
const sending = (description: string, command: string) => ({
  name: "Agent",
  input: {
    description,
    subagent_type: "general-purpose",
    prompt: `Go. ${scriptTag([{ tools: [bash(command)] }, { text: "Well." }])}`,
  },
});

/**
 * Tells whether the card's button with `text`, or without `text` its textarea, can be clicked in its middle. Waits for two
 * frames, because a scrolled page shows the buttons to its ends, above which the card's buttons then are. Measures and looks in
 * one call, so that nothing moves in between.
 */
const isWithinReach = async (page: Page, text?: string) =>
  page.evaluate<boolean>(`(async () => {
    for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
    const all = [...document.querySelectorAll(".requests-card :is(button, textarea)")];
    const text = ${text === undefined ? "undefined" : JSON.stringify(text)};
    const [target, another] = all.filter((each) => text ? each.innerText === text : each.localName === "textarea");
    if (!target || another) return false;
    const { height, width, x, y } = target.getBoundingClientRect();
    return target.contains(document.elementFromPoint(x + width / 2, y + height / 2));
  })()`);
/** Distance from the top of the page. */
const topOf = async (target: Locator) =>
  ((await target.boundingBox())?.y ?? 0) + (await target.page().evaluate<number>("scrollY"));

it("two subagents that ask at once are told apart, and each card links to its task", async () => {
  const agents = [sending("Check the shop", "touch shop"), sending("Check the bank", "touch bank")];
  const said = { text: "Over." };
  const id = await desk.api.start(scriptTag([{ tools: agents }, said, said, said]), desk.world.folder());
  const window = await desk.open({ hash: "#/approvals" });
  const { page } = window;
  await expect.poll(async () => cards(page).count()).toBe(2);
  await cards(page, "Check the bank (subagent) asks to run a command")
    .getByText("touch bank", { exact: true })
    .waitFor();
  const shop = cards(page, "Check the shop (subagent) asks to run a command");
  await window.picture("asking-subagents");
  await window.go("#/usage");
  // No turn has ended and no request is answered, but waiting time already counts.
  const tile = page.locator(".usage-tile").filter({ hasText: "Waiting for approval" });
  await tile.getByText("2 open requests now").waitFor();
  expect(await tile.locator(".usage-value").innerText()).toMatch(/^\d/);
  await window.go("#/approvals");
  await shop.getByRole("link", { name: "Its task" }).click();
  await page.waitForURL(new RegExp(`#/sessions/${id}\\?event=\\d+$`));
  await expect
    .poll(async () => page.evaluate<string>("document.activeElement.innerText"))
    .toMatch(/^(?!.*Check the bank).*Check the shop/s);
  for (const name of ["shop", "bank"]) await press(cards(page, new RegExp(`^Check the ${name}`)), "Allow");
  await expect.poll(async () => (await desk.api.get<SessionDetail>(`sessions/${id}`)).requests).toBe(0);
});

const VIEWPORTS = { desktop: { width: 1_280, height: 700 }, phone: PHONE, turned: { width: 740, height: 360 } };

it("the buttons of a long card, and of its forms, stay in view at every scroll position", async () => {
  const command = Array.from({ length: 80 }, (_, line) => `echo line ${String(line)} > file`).join("\n");
  const id = await desk.api.start(`${"Words. ".repeat(400)} ${toolCalls([bash(command)])}`, desk.world.folder());
  await desk.api.asked(id);
  const window = await desk.open({ hash: `#/sessions/${id}` });
  const { page } = window;
  const card = cards(page);
  const button = (text: string) => card.getByRole("button", { name: text, exact: true });
  for (const [name, viewport] of Object.entries(VIEWPORTS)) {
    await page.setViewportSize(viewport);
    await button("Allow").waitFor();
    // Scrolled until the last button, which covers the text, is in view.
    await expect
      .poll(async () => {
        await page.evaluate(
          'scrollTo(0, document.querySelector(".requests-card").getBoundingClientRect().top + scrollY - innerHeight / 3)',
        );
        return isWithinReach(page, "Deny…");
      })
      .toBe(true);
    await button("Deny…").click();
    await card.getByLabel(/^Message to Claude Code/).fill("Not now.");
    await window.picture(`asking-deny-${name}`, false);
    for (const text of ["Deny", "Cancel", undefined])
      await expect.poll(async () => isWithinReach(page, text), { message: text ?? "textarea" }).toBe(true);
    await button("Cancel").click();
  }
  await press(card, "Allow");
  // Stops the clock, so that the answered card stays.
  await page.clock.setFixedTime(Date.now());
  await entry(page, "Turn done").waitFor();
  // Nothing is shown below the end of the turn, and no space is kept for a card.
  const look = 'getComputedStyle(document.querySelector(".requests-card"))';
  await expect
    .poll(async () => page.evaluate<string>(`${look}.position + " " + ${look}.clipPath`))
    .toBe("absolute inset(50%)");
});

it("an answered card keeps its height until the pointer leaves the cards, so that the next card can be answered at once", async () => {
  const ids = await Promise.all(
    ["one", "two", "three"].map(async (file) =>
      desk.api.start(toolCalls([bash(`touch ${file}`)]), desk.world.folder()),
    ),
  );
  for (const id of ids) await desk.api.asked(id);
  const window = await desk.open({ hash: "#/approvals", hasClock: true });
  const { page } = window;
  await expect.poll(async () => cards(page).count()).toBe(3);
  const [first, second, third] = [cards(page).first(), cards(page).nth(1), cards(page).last()];
  // Time limit of callers, extended on request.
  await second.getByText(/denied in (1 h 00 min|59:\d\d)/).waitFor();
  await second.getByRole("button", { name: "More time to answer" }).click();
  await second.getByText(/denied in (2 h 00 min|1 h 59 min)/).waitFor();
  const before = await topOf(third);
  await press(first, "Allow");
  await first.getByText("Allowed.", { exact: true }).waitFor();
  // The second card has stayed in place all the time.
  await second.getByRole("button", { name: "Allow", exact: true }).click();
  await second.getByText("Allowed.", { exact: true }).waitFor();
  await first.getByText("Claude Code asked to run a command").waitFor();
  expect(await topOf(third)).toBe(before);
  await window.picture("asking-answered-kept", false);
  await page.mouse.move(4, 4);
  await expect.poll(async () => topOf(third)).toBeLessThan(before - 200);
  const after = await topOf(third);
  expect((await first.boundingBox())?.height).toBeLessThan(60);
  await window.picture("asking-answered");
  // Longer than an answered card stays when it is last.
  await page.clock.runFor(7_000);
  expect(await topOf(third)).toBe(after);
  // A button that only opens a form works at once.
  await third.getByRole("button", { name: "Deny…", exact: true }).click();
  await third.getByLabel(/^Message to Claude Code/).waitFor();
  await third.getByRole("button", { name: "Deny", exact: true }).click();
  await third.getByText("Denied.", { exact: true }).waitFor();
});

it("a tap on a card that has just moved is refused with a hint, and accepted when repeated", async () => {
  const ids = await Promise.all(
    ["four", "five"].map(async (file) => desk.api.start(toolCalls([bash(`touch ${file}`)]), desk.world.folder())),
  );
  for (const id of ids) await desk.api.asked(id);
  const { page } = await desk.open({ hash: "#/approvals", hasClock: true, hasTouch: true, viewport: PHONE });
  await expect.poll(async () => cards(page).count()).toBe(2);
  await page.clock.pauseAt(Date.now() + 2_000);
  await page.clock.runFor(500);
  const [first, second] = [cards(page).first(), cards(page).last()];
  const tapAllow = async (card: Locator) => card.getByRole("button", { name: "Allow", exact: true }).tap();
  await tapAllow(first);
  await first.getByText("Allowed.", { exact: true }).waitFor();
  await page.clock.runFor(50);
  await tapAllow(second);
  await second.getByText("The list moved. Check that you mean this request, then click again.").waitFor();
  await page.clock.runFor(600);
  await tapAllow(second);
  await second.getByText("Allowed.", { exact: true }).waitFor();
  for (const id of ids) expect((await desk.api.end(id)).requests).toBe(0);
});

it("Ctrl+Enter decides nothing in a card that has just appeared, but does so a moment later", async () => {
  const { page } = await desk.open({ hash: "#/approvals", hasClock: true });
  await page.getByText("No open requests.").waitFor();
  await page.clock.pauseAt(Date.now() + 1_000);
  const id = await desk.api.start(toolCalls([bash("touch three")]), desk.world.folder());
  const card = cards(page);
  await card.getByRole("button", { name: "Deny…", exact: true }).click();
  const why = card.getByLabel(/^Message to Claude Code/);
  await why.fill("Not this one.");
  await why.press("Control+Enter");
  await card.getByText("This request just appeared").waitFor();
  expect((await desk.api.get<SessionDetail>(`sessions/${id}`)).requests).toBe(1);
  await page.clock.runFor(400);
  await why.press("Control+Enter");
  await card.getByText(/^Denied/).waitFor();
  expect((await desk.api.end(id)).requests).toBe(0);
});
