import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import { EMPTY_DAY } from "../../src/domain/budget.ts";
import type { SessionEvent } from "../../src/domain/event.ts";
import { accountKey, budgetKey, localDay } from "../../src/domain/ledger.ts";
import { initialState, type SessionState } from "../../src/domain/session.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { addSession, HOUR, id, promptEvent } from "../kit/clients/sessions-command.ts";
import { entry, startSession } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";
import { PHONE } from "../kit/browser/window.ts";

/** Sessions at limits on the page: waits, the refused request, plan windows and budgets. */

const NOW = Date.now();
/** In two minutes and two hours, so that no test depends on the time of day. */
const [SOON, LATER] = [NOW + 120_000, NOW + 2 * HOUR];
const [REFUSED, STOPPED] = [id(1), id(2)];
const refused = { window: "five_hour", resetsAt: SOON } as const;
const refusal = (resetsInS: number) => ({ status: 429, plan: { claim: "five_hour", resetsInS } }) as const;
const login = { configFolder: "/home/ann/.claude", paidBy: "the Claude login" };
const turnEnded = (data: { errorSubtype: string; limit: typeof refused }): SessionEvent => ({
  type: "turn.ended",
  data: {
    turnId: "t",
    outcome: "failed",
    isError: true,
    durationMs: 1,
    durationApiMs: 1,
    numTurns: 1,
    costUsd: 0,
    sessionTurns: 1,
    sessionCostUsd: 0,
    ...data,
  },
});
const stopped: Partial<SessionState> = {
  identity: login,
  lastOutcome: "interrupted",
  waiting: { kind: "plan_reserve", window: "seven_day", until: LATER, since: NOW },
  queue: [{ promptId: "p", eventId: 1, held: true }],
};

let desk: Desk;
beforeAll(async () => {
  const limits = ["--plan-reserve", '{"fiveHour":15,"sevenDay":20}', "--budget-usd-per-day", "10"];
  const night = { description: "For long work.", options: { permissionMode: "acceptEdits" } };
  desk = await openDesk({
    plan: true,
    args: [...limits, "--profiles", JSON.stringify({ night })],
    seeded: async (node) => {
      const end = turnEnded({ errorSubtype: "usage_limit", limit: refused });
      const events = [promptEvent("Refactor it."), end];
      await addSession(node, REFUSED, { cwd: process.cwd(), events, state: { lastOutcome: "failed", refused } });
      await addSession(node, STOPPED, { events: [promptEvent("Review it.")], state: stopped });
      const windows = {
        five_hour: { usedPercent: 90, resetsAt: LATER, source: "headers", at: NOW },
        seven_day_opus: { isRejected: true, resetsAt: LATER, source: "rejection", at: NOW },
      };
      await node.ledger.update(accountKey("account:1"), () => ({ ...login, windows }));
      const spent = { ...EMPTY_DAY, spentUsd: 4, unknownUsd: 1, reserved: { t: 0.5 } };
      const budget = { scope: "principal", name: "local" } as const;
      await node.ledger.update(budgetKey(budget, localDay(NOW)), () => spent);
    },
  });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

it("a session at a limit shows its wait and offers the refused request; the usage has windows and budgets", async () => {
  const opened = await desk.open({ hasClock: true });
  const { page } = opened;
  const time = (at: number) =>
    new Date(at).toLocaleTimeString("en-GB", { timeStyle: "short", timeZone: "Europe/Berlin" });
  const row = (words: string) => page.getByRole("listitem").filter({ hasText: words });
  await row("Review it.")
    .getByText(/^waits for the reserve of the weekly window until/)
    .waitFor();

  await opened.go(`#/sessions/${STOPPED}`);
  await page.getByText(/^1 prompt is held: the session waits for the reserve .* Reply to go on\.$/).waitFor();
  await desk.change(async (node) => {
    const lease = (await node.leases.claim(STOPPED))!;
    const { waiting: _, ...state } = { ...initialState(NOW), ...stopped, lastEventId: 1 };
    await node.log.append(lease, { events: [], at: Date.now(), state });
    await node.leases.release(lease);
  });
  await page.getByText("1 prompt is held since the turn was interrupted.").waitFor();

  await opened.go(`#/sessions/${REFUSED}`);
  await entry(page, `The 5-hour window resets ${time(SOON)}. From then on, Continue sends`).waitFor();
  const early = page.getByRole("button", { name: `Continue from ${time(SOON)}` });
  expect(await early.getAttribute("aria-disabled")).toBe("true");
  expect(await opened.violations()).toEqual([]);
  await opened.picture("limit-session");
  // The page's clock is ahead of the server's, which refuses.
  await page.clock.fastForward(180_000);
  opened.allowFailures(/status of 409/);
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByText(/^The 5-hour window resets at .*Continue after that\.$/).waitFor();
  await opened.picture("limit-refused");

  await opened.go("#/usage");
  const meter = (name: RegExp) => page.getByRole("meter", { name });
  await expect
    .poll(async () => meter(/login: 5-hour window/).getAttribute("aria-valuetext"))
    .toMatch(/^90 % used, .*resets/);
  expect(await meter(/login: 5-hour window/).getAttribute("aria-valuenow")).toBe("90");
  expect(await meter(/login: weekly window/).getAttribute("aria-valuetext")).toMatch(/^nothing known, counts as free/);
  expect(await meter(/Opus/).getAttribute("aria-valuetext")).toMatch(/^used up, .*known from a rejection only/);
  const section = page.getByRole("region", { name: "Plan and budgets" });
  await section.getByText("$4.00 spent of $10.00 a day").waitFor();
  await section.getByText("$0.50 reserved by running turns · $1.00 of it at an unknown price").waitFor();
  await section.getByText(/estimates of Claude Code/).waitFor();
  expect(await opened.violations()).toEqual([]);
  await opened.picture("limit-usage");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize(PHONE);
  expect([await opened.violations(), await opened.overhang()]).toEqual([[], 0]);
  await opened.picture("limit-usage-phone");
  await page.clock.fastForward(3 * HOUR);
  await expect.poll(async () => meter(/login: 5-hour window/).getAttribute("aria-valuetext")).toMatch(/^free, /);
});

it("a turn refused at a limit goes on by one press after the reset", async () => {
  const { page } = await desk.open();
  const script = scriptTag([{ error: refusal(2), text: "I went on." }]);
  const sessionId = await startSession(page, script, { cwd: desk.world.folder() });
  await entry(page, "The 5-hour window is used up").waitFor();
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await entry(page, "I went on.").waitFor();
  await entry(page, "Turn done").waitFor();
  await page.getByRole("button", { name: /^Continue/ }).waitFor({ state: "detached" });
  const sent = desk.world.model.requests.filter((request) => request.sessionId === sessionId);
  expect(sent.map(({ digest }) => digest)).toEqual([sent[0]?.digest, sent[0]?.digest]);
});

it("a session starts with the chosen profile, priority and behavior at a limit, and an interrupt ends its wait", async () => {
  const { page } = await desk.open({ hash: "#/start" });
  await page.getByLabel("Profile").selectOption("night");
  await page.getByText("For long work.").waitFor();
  await page.getByLabel("At a limit").selectOption({ label: "Wait, then go on" });
  await page.getByLabel("Priority").selectOption({ label: "Background" });
  expect(await page.getByLabel("Permissions").innerText()).toContain("As the profile says");
  const script = scriptTag([{ error: refusal(3_600), text: "Never." }]);
  const sessionId = await startSession(page, script, { cwd: desk.world.folder() });
  const wait = page.getByText(/^waits for the 5-hour window until/);
  await wait.waitFor();
  const terms = { profile: "night", priority: "background", onLimit: "wait", permissionMode: "acceptEdits" };
  expect(await desk.api.get(`sessions/${sessionId}`)).toMatchObject({ ...terms, status: "running" });
  await page.locator("header summary").click();
  await page.getByRole("definition").filter({ hasText: "waits and goes on" }).waitFor();
  await entry(page, "The turn waits, and goes on by itself at").waitFor();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await entry(page, "Turn interrupted by console").waitFor();
  await wait.waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^Continue from/ }).waitFor();
});
