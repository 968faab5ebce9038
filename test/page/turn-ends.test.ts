import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import type { Usage } from "../../src/console/wire-usage.ts";
import { SessionEvent } from "../../src/domain/event.ts";
import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { cards, entry, press } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";
import { receiptEvent, verified, verifying } from "../kit/browser/evidence.ts";
import { ended as endOf, toolCall } from "../kit/browser/timeline.ts";
import { PHONE } from "../kit/browser/window.ts";
import { addSession, id as idOf, promptEvent } from "../kit/clients/sessions-command.ts";

/** Ends of turns: their text, and the work counted in usage. */

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk({ agent: "real", args: ["--caller-approves", "all"] });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

it("a failed turn is a single entry that begins with the cause", async () => {
  const script: Script = [{ error: { status: 400, message: "The prompt is too strange." }, times: 20, text: "no" }];
  const id = await desk.api.start(`Break the model. ${scriptTag(script)}`, desk.world.folder());
  await desk.api.end(id);
  const window = await desk.open({ hash: `#/sessions/${id}` });
  const { page } = window;
  const cause = "API Error: 400 The prompt is too strange.";
  await entry(page, new RegExp(`^${cause} Turn failed ·`)).waitFor();
  expect(await entry(page, /too strange|error|failed/i).count()).toBe(1);
  expect(await page.getByText(/unknown/).count()).toBe(0);
  await window.picture("api-error", false);
  // A text that only the result reports appears once, too.
  const limited = await desk.api.start(toolCalls([{ name: "Glob", input: { pattern: "*" } }]), desk.world.folder(), {
    maxTurns: 1,
  });
  await desk.api.end(limited);
  await window.go(`#/sessions/${limited}`);
  await entry(page, /^Reached maximum number of turns \(1\) Turn failed ·/).waitFor();
});

it("usage counts the work of turns, not the time that requests of other turns were open", async () => {
  const ended = await desk.api.start(scriptTag([{ text: "Done." }]), desk.world.folder());
  await desk.api.end(ended);
  const asking = await desk.api.start(toolCalls([writeCall("a.txt")]), desk.world.folder());
  await desk.api.asked(asking);
  const totals = async () => (await desk.api.get<Usage>("usage")).totals;
  await expect.poll(async () => (await totals()).waitedMs - (await totals()).durationMs).toBeGreaterThan(0);
  const { durationMs, workedMs } = await totals();
  expect(workedMs).toBe(durationMs);
  const { page } = await desk.open({ hash: "#/usage" });
  const tile = page.locator(".usage-tile").filter({ hasText: "Time worked" });
  await tile.waitFor();
  expect(await tile.locator(".usage-value").innerText()).not.toBe("0.0 s");
});

/** Receipt near its bound of 64 KiB, in which the names are hostile. */
const BOUNDED = receiptEvent({
  complete: false,
  notSeen: ["The folder vendor has more than 20,000 entries."],
  files: Array.from({ length: 600 }, (_, at) => ({
    path: `src/<b>${String(at)}</b>/${"deep/".repeat(8)}\u202Ea.ts`,
    change: "changed",
    lines: [1, 2],
    by: ["tree", "Edit"],
  })),
  commands: [{ eventId: 2, command: "npm test", exit: 1, check: "test", failed: 1, passed: 41 }],
  commits: [{ hash: "ab12cd3ef".padEnd(40, "0"), subject: "Mend the login" }],
  denied: 1,
});

it("the end of a turn shows its verification and its receipt, and a command of the receipt leads to its call", async () => {
  const id = idOf(1);
  const commands = [{ command: "npm test", exit: 1, ms: 2_100, tail: "not ok 1 - login" }];
  const red = verified({ status: "failed", attempts: 2, of: 2, commands });
  const end = endOf({
    outcome: "failed",
    isError: true,
    errorSubtype: "verification_failed",
    message: "The verification failed: npm test exited with 1.",
  });
  const call = toolCall("u", "Bash", { command: "npm test" });
  const events = SessionEvent.array().parse([
    promptEvent("Mend it."),
    call,
    verifying(2, 2, "npm test", "npm run lint"),
    red,
    BOUNDED,
    end,
  ]);
  await desk.change(async (node) => addSession(node, id, { events, state: { lastOutcome: "failed" } }));
  const window = await desk.open({ hash: `#/sessions/${id}` });
  const { page } = window;
  await page.getByRole("status").filter({ hasText: "Error Verification failed" }).waitFor();
  await entry(page, /^The verification failed: npm test exited with 1\. Turn failed · /).waitFor();
  await entry(page, "Verification failed, attempt 2 of 2").locator("summary").first().press("Enter");
  await page.getByLabel("End of the output").getByText("not ok 1 - login").waitFor();
  const receipt = entry(page, "600 files, 600 lines added, 1,200 removed");
  await receipt.locator("summary").press("Enter");
  const files = receipt.getByRole("list", { name: "Files" });
  const more = receipt.getByRole("button", { name: "Show all 600" });
  await more.waitFor();
  expect(await files.getByRole("listitem").count()).toBe(50);
  for (const [name, colorScheme] of [
    ["light", "light"],
    ["dark", "dark"],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await window.violations()).toEqual([]);
    await window.picture(`receipt-${name}`, false);
  }
  await more.click();
  expect(await files.getByRole("listitem").last().innerText()).toMatch(/^src\/<b>599<\/b>.*⟨U\+202E⟩a.ts \+1 −2\n/);
  await page.setViewportSize(PHONE);
  expect(await window.overhang()).toBe(0);
  await window.picture("receipt-phone", false);
  await receipt.getByRole("link", { name: "npm test", exact: true }).click();
  await expect.poll(async () => page.locator(":focus").getAttribute("data-event")).toBe("2");
});

it("a verification can be allowed or denied, but neither changed nor allowed for the session", async () => {
  const connection = await desk.http.connect();
  const verify = { commands: ["echo one", "exit 3"], attempts: 0 };
  const prompt = scriptTag([{ text: "All tests pass." }]);
  const { sessionId } = await connection.call("claude_code", {
    prompt,
    cwd: desk.world.folder(),
    advanced: { verify },
  });
  const { page } = await desk.open({ hash: `#/sessions/${sessionId}` });
  const card = cards(page, "The server asks to verify the work with 2 commands");
  await card.getByRole("group", { name: "Command 2" }).getByText("exit 3").waitFor();
  expect(await card.getByRole("button").allInnerTexts()).toEqual(["More time", "Allow", "Deny…"]);
  await press(card, "Allow", page.getByRole("status").filter({ hasText: "Error Verification failed" }));
  await entry(page, /Verification failed exit 3: exit 3/).waitFor();
  expect(await entry(page, "Receipt:").count()).toBe(0);
});
