import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";

/** Cards of requests on the page, and answers to them. */

export const cards = (
  page: Page,
  name: RegExp | string = /^(Claude Code|A subagent|.* \(subagent\)) (asks|asked|has|had) /,
) => page.getByRole("article", { name });

/** Presses the button until the card no longer asks whether it was meant, or `taken` shows that it was pressed. */
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
 * Waits until no card is left. What became of a request is shown for some seconds, which pass at once in a window with a clock
 * (`hasClock`); `test/page/people.test.ts` waits for them.
 */
export async function allGone(page: Page): Promise<void> {
  await expect
    .poll(async () => {
      await page.clock.fastForward(1_000);
      return cards(page).count();
    })
    .toBe(0);
}

/** An item of the timeline with this text. Prompts hold only scripts here. */
export const entry = (page: Page, words: RegExp | string) =>
  page
    .getByRole("region", { name: "Timeline" })
    .getByRole("listitem")
    .filter({ hasText: words, hasNotText: "model-script" });

/** The events by which the items of the timeline are named, from top to bottom. */
export const shownEvents = async (page: Page) =>
  page.evaluate<number[]>('[...document.querySelectorAll("[data-event]")].map(({ dataset }) => Number(dataset.event))');

/** Fills in the form for a new session and sends it; resolves with the session's id when its page is there. */
export async function startSession(page: Page, prompt: string, { cwd, mode }: { cwd: string; mode?: string }) {
  await page.getByRole("link", { name: "New session" }).click();
  await page.getByLabel("What is to be done?").fill(prompt);
  await page.getByLabel("Directory", { exact: true }).fill(cwd);
  if (mode !== undefined) await page.getByLabel("Permissions").selectOption({ label: mode });
  await page.getByRole("button", { name: "Start session" }).click();
  await page.waitForURL(/#\/sessions\/.+/);
  return decodeURIComponent(new URL(page.url()).hash.replace("#/sessions/", ""));
}
