import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import type { Usage } from "../../src/console/wire.ts";
import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { entry } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";

/** Ends of turns: their text, and the work counted in usage. */

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk({ agent: "real" });
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
