import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Locator, Page, Route } from "playwright-core";

import type { ViewName } from "../../console/src/state/views.ts";
import { cards, entry, press } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";
import { makeSampleSessions, type SampleSessions } from "../kit/browser/sample-sessions.ts";
import { DESKTOP, PHONE, type OpenWindow } from "../kit/browser/window.ts";

/** Checks every view with axe and for overflow of the window, and takes a picture of each for people. */

let desk: Desk;
let samples: SampleSessions;
beforeAll(async () => {
  desk = await openDesk({ args: ["--allow-rules", "Bash(echo:*)"] });
  samples = await makeSampleSessions(desk);
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

/** Opens every `details`, including nested ones. */
async function unfold(page: Page): Promise<void> {
  const closed = page.locator("main details:not([open]) > summary");
  await expect
    .poll(async () => {
      await page.evaluate('document.querySelectorAll("main details").forEach((each) => { each.open = true; })');
      return closed.count();
    })
    .toBe(0);
}

interface View {
  readonly hash: () => string;
  readonly isThere: (page: Page) => Promise<void>;
}

const heading = (name: string | RegExp) => async (page: Page) =>
  page.getByRole("heading", { level: 1, name }).waitFor();

/** Fails to compile if a `ViewName` is missing. */
const VIEWS: Readonly<Record<ViewName | "missing" | "session" | "session-unfolded" | "session-asking", View>> = {
  sessions: {
    hash: () => "#/sessions",
    isThere: async (page) => page.getByRole("link", { name: "Mend the login test" }).waitFor(),
  },
  start: { hash: () => "#/start", isThere: heading("New session") },
  missing: { hash: () => "#/nothing", isThere: heading("Page not found") },
  session: {
    hash: () => `#/sessions/${samples.everything}`,
    isThere: async (page) => entry(page, "The agent says that all is quiet.").first().waitFor(),
  },
  "session-unfolded": {
    hash: () => `#/sessions/${samples.everything}?event=1`,
    isThere: async (page) => {
      await entry(page, "The agent says that all is quiet.").first().waitFor();
      await unfold(page);
    },
  },
  "session-asking": {
    hash: () => `#/sessions/${samples.command}`,
    isThere: async (page) => cards(page).waitFor(),
  },
  approvals: {
    hash: () => "#/approvals",
    isThere: async (page) => {
      await expect.poll(async () => cards(page).count()).toBe(4);
      await page.getByText("Not by force.").waitFor();
    },
  },
  usage: {
    hash: () => "#/usage",
    isThere: async (page) => {
      await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
      await page.getByText("my-project").first().waitFor();
      await unfold(page);
    },
  },
};

/** Returns the axe violations and the overflow (px) of the current view. */
async function faults(window: OpenWindow): Promise<unknown> {
  const overhang = Math.max(0, await window.overhang());
  return { violations: await window.violations(), overhang };
}
const NONE = { violations: [], overhang: 0 };
const WELL = { light: NONE, dark: NONE };

const SCHEMES = ["light", "dark"] as const;

describe.each([
  ["desktop", DESKTOP],
  ["phone", PHONE],
] as const)("on a %s", (device, viewport) => {
  /** Returns the faults in each color scheme, and takes a picture of each; `view` begins their file names. */
  const faultsOf = async (window: OpenWindow, view: string, isWhole = true) => {
    const found: Record<string, unknown> = {};
    for (const colorScheme of SCHEMES) {
      await window.page.emulateMedia({ colorScheme });
      found[colorScheme] = await faults(window);
      await window.picture(`${view}-${device}-${colorScheme}`, isWhole);
    }
    return found;
  };

  it("every view is accessible and fits the window, in light and in dark", async () => {
    const window = await desk.open({ viewport });
    const found: Record<string, unknown> = {};
    for (const [name, { hash, isThere }] of Object.entries(VIEWS)) {
      await window.go(hash());
      await isThere(window.page);
      // Sticky elements would be drawn in the middle of a picture of the whole page.
      found[name] = await faultsOf(window, name, !name.startsWith("session-") && name !== "session");
    }
    expect(found).toEqual(Object.fromEntries(Object.keys(VIEWS).map((name) => [name, WELL])));
  });

  it("a user who is not signed in sees the sign-in form, in light and in dark", async () => {
    const window = await desk.open({ viewport, token: "" });
    await window.page.getByLabel("Access token").waitFor();
    expect(await faultsOf(window, "sign-in")).toEqual(WELL);
    window.allowFailures(/status of 401 /);
    await window.page.getByLabel("Access token").fill("ccm_wrong");
    await window.page.keyboard.press("Enter");
    await window.page.getByRole("alert").getByText("Not signed in").waitFor();
    expect(await faultsOf(window, "sign-in-refused")).toEqual(WELL);
  });
});

it("on a phone, the time of a text is shown beside its first line", async () => {
  const { page } = await desk.open({ viewport: PHONE, hash: `#/sessions/${samples.everything}` });
  const said = entry(page, "The agent says that all is quiet.").first();
  const top = async (of: Locator) => (await of.boundingBox())?.y ?? Number.NaN;
  await said.waitFor();
  const below =
    (await top(said.locator("time").last())) - (await top(said.getByText("The agent says that all is quiet.")));
  expect(Math.abs(below)).toBeLessThan(10);
});

it("dialogs, menus and forms on top of a view are accessible and fit the window", async () => {
  const window = await desk.open({ hash: "#/approvals" });
  const { page } = window;
  const found: Record<string, unknown> = {};
  const look = async (name: string) => {
    found[name] = await faults(window);
    await window.picture(`${name}-desktop-light`);
  };
  const card = cards(page, "Claude Code asks to write a file");
  await press(card, "Edit input…");
  await look("card-edit");
  await card.getByRole("button", { name: "Cancel" }).click();
  await press(card, "Deny…");
  await look("card-deny");
  await card.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("heading", { level: 1 }).click();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await look("key-help");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /account and help$/ }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await look("account");
  await window.go(`#/sessions/${samples.everything}`);
  await page.getByRole("button", { name: "Cancel session" }).click();
  await page.getByRole("dialog").waitFor();
  await look("cancel-dialog");
  expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, NONE])));
});

it("signing out signs out every window of the user", async () => {
  const { context, page } = await desk.open();
  const other = await context.newPage();
  await other.goto(page.url());
  await other.getByRole("navigation").waitFor();
  await page.getByRole("button", { name: /account and help$/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  for (const each of [page, other]) await each.getByLabel("Access token").waitFor();
  expect(await context.cookies()).toEqual([]);
});

it("an address with a token signs in, and the token stays neither in the address nor in the browser's storage", async () => {
  const window = await desk.open({ token: "" });
  const { page } = window;
  await page.goto(`${desk.http.origin}/console/#token=${desk.http.token}`);
  await page.getByRole("navigation").waitFor();
  expect(page.url()).not.toContain("token");
  const kept = await page.evaluate<string>(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, document.cookie])",
  );
  expect(kept).not.toContain(desk.http.token);
});

it("an address with a token signs in even while the page still asks who is signed in", async () => {
  const { page } = await desk.open({ token: "" });
  const held: Route[] = [];
  await page.route("**/console/api/me", async (route) => {
    if (held.length > 0) await route.continue();
    else held.push(route);
  });
  await page.reload();
  await expect.poll(() => held.length).toBe(1);
  await page.goto(`${desk.http.origin}/console/#token=${desk.http.token}`);
  await page.getByRole("navigation").waitFor();
  const late = page.waitForResponse((response) => response.url().endsWith("/api/me") && response.status() === 401);
  await held[0]?.continue();
  await late;
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByRole("heading", { name: "Usage", exact: true }).first().waitFor();
});
