import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";

/** Cards of requests on the page, and answers to them. */

export const cards = (
  page: Page,
  name: RegExp | string = /^(Claude Code|The server|A subagent|.* \(subagent\)) (asks|asked|has|had) /,
) => page.getByRole("article", { name });

/** Presses the button until the card stops asking whether the press was meant, or `taken` is visible. */
export async function press(card: Locator, name: string, taken?: Locator): Promise<void> {
  const button = card.getByRole("button", { name, exact: true });
  const tooSoon = card.getByText(/^(This request just appeared|The list moved|The focus just moved)/);
  await expect
    .poll(async () => {
      await button.click();
      return (await taken?.isVisible()) === true || !(await tooSoon.isVisible());
    })
    .toBe(true);
  await taken?.waitFor();
}

/**
 * Waits until no card is left. The outcome of a request stays visible for some seconds; a window with a clock (`hasClock`)
 * skips them. `test/page/people.test.ts` waits in real time.
 */
export async function waitForNoCards(page: Page): Promise<void> {
  await expect
    .poll(async () => {
      await page.clock.fastForward(1_000);
      return cards(page).count();
    })
    .toBe(0);
}

/** Finds timeline items with a text. Items of prompts are excluded, because prompts contain the scripts. */
export const entry = (page: Page, words: RegExp | string) =>
  page
    .getByRole("region", { name: "Timeline" })
    .getByRole("listitem")
    .filter({ hasText: words, hasNotText: "model-script" });

/** Event ids of the timeline's items, from top to bottom. */
export const shownEventIds = async (page: Page) =>
  page.evaluate<number[]>('[...document.querySelectorAll("[data-event]")].map(({ dataset }) => Number(dataset.event))');

/** Fills in and sends the form for a new session; resolves with the session's id once its page is open. */
export async function startSession(page: Page, prompt: string, { cwd, mode }: { cwd: string; mode?: string }) {
  await page.getByRole("link", { name: "New session" }).click();
  await page.getByLabel("What is to be done?").fill(prompt);
  await page.getByLabel("Directory", { exact: true }).fill(cwd);
  if (mode !== undefined) await page.getByLabel("Permissions").selectOption({ label: mode });
  await page.getByRole("button", { name: "Start session" }).click();
  await page.waitForURL(/#\/sessions\/.+/);
  return decodeURIComponent(new URL(page.url()).hash.replace("#/sessions/", ""));
}
