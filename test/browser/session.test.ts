import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import type { SessionDetail } from "../../src/console/wire.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { cards, entry, shownEventIds, startSession } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";

/** A session on its page: prompts, interrupt, cancel, rewind, rename and delete, and a user without a mouse. */

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk({ args: ["--allow-rules", "Bash(echo:*)"] });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

const sendPrompt = async (page: Page, prompt: string) => {
  await page.getByLabel("Prompt").fill(prompt);
  await page.getByRole("button", { name: "Send" }).click();
};
const detail = async (id: string) => desk.api.get<SessionDetail>(`sessions/${id}`);
/** Waits until the model is asked for answer `entryNumber`. */
const waitForEntry = async (id: string, entryNumber: number) =>
  desk.world.model.waitForRequest(
    ({ served, sessionId }) => sessionId === id && "entry" in served && served.entry === entryNumber,
  );
const turnsDone = async (page: Page, count: number) => {
  await expect.poll(async () => entry(page, "Turn done").count()).toBe(count);
};

/** Returns name and position of the buttons that act on the whole session. */
const actionsOf = async (page: Page) => {
  const buttons = await page.getByRole("button", { name: /^(Interrupt|Cancel session|Delete)/ }).all();
  return Promise.all(
    buttons.map(async (button) => {
      const { height = 0, width = 0, x = 0, y = 0 } = (await button.boundingBox()) ?? {};
      const middle: [number, number] = [x + width / 2, y + height / 2];
      return { name: await button.innerText(), middle };
    }),
  );
};

describe("while a turn runs", () => {
  it("a prompt during a turn waits for its end or joins it, as chosen", async () => {
    const { page } = await desk.open();
    const script = [{ text: "One.", gateBefore: "steer-1" }, { text: "Two, as you wish." }];
    const id = await startSession(page, scriptTag(script), { cwd: desk.world.folder() });
    await waitForEntry(id, 0);
    await page.getByRole("radio", { name: "After this turn" }).check();
    await sendPrompt(page, `Later. ${scriptTag([{ text: "Three, later." }])}`);
    await expect.poll(async () => (await detail(id)).queued).toBe(1);
    await page.getByRole("radio", { name: "Into this turn" }).check();
    await sendPrompt(page, "Hurry up, please.");
    await page.getByText("joined the running turn").waitFor();
    desk.world.model.release("steer-1");
    await entry(page, "Three, later.").waitFor();
    await turnsDone(page, 2);
    // The prompt is shown at its delivery, not within the turn before it.
    const shown = await page.locator(".timeline-items > li").allInnerTexts();
    const at = (words: RegExp) => shown.findIndex((each) => words.test(each));
    const order = [at(/One\./), at(/Turn done/), at(/^Prompt\s+(?:sent at \S+\s+)?Later\./), at(/^Three, later/)];
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    // No file was changed, so that nothing can be rewound.
    expect(await page.getByRole("button", { name: /^Rewind files/ }).count()).toBe(0);
    expect(await detail(id)).toMatchObject({ status: "idle", queued: 0 });
    expect(desk.world.transcript(id)).toContain("Hurry up, please.");
  });

  it("Send stays under the pointer while the timeline grows", async () => {
    const { page } = await desk.open();
    const script = [{ text: "One.", gateBefore: "press-1" }, { text: "Two." }];
    const id = await startSession(page, scriptTag(script), { cwd: desk.world.folder() });
    await waitForEntry(id, 0);
    await page.getByLabel("Prompt").fill("Pressed.");
    await page.getByRole("button", { name: "Send" }).hover();
    await page.mouse.down();
    // Sends a prompt from another window meanwhile.
    await desk.api.post(`sessions/${id}/reply`, { prompt: "Meanwhile.", idempotencyKey: "a", whenBusy: "queue" });
    await page.getByText("1 prompt is queued until this turn ends.").waitFor();
    await page.getByText("Meanwhile.").waitFor();
    await page.mouse.up();
    await expect.poll(async () => (await detail(id)).queued).toBe(2);
    desk.world.model.release("press-1");
    await turnsDone(page, 3);
  });

  it("an interrupt holds queued prompts until they are released", async () => {
    const { page } = await desk.open();
    const script = [{ text: "Never.", gateBefore: "never-1" }];
    const id = await startSession(page, scriptTag(script), { cwd: desk.world.folder() });
    await waitForEntry(id, 0);
    await sendPrompt(page, scriptTag([{ text: "After the interrupt." }]));
    await expect.poll(async () => (await detail(id)).queued).toBe(1);
    const before = await actionsOf(page);
    await page.getByRole("button", { name: "Interrupt" }).click();
    await entry(page, "Turn interrupted by console").waitFor();
    expect(await page.getByText("Request interrupted by user").count()).toBe(0);
    expect(await page.getByRole("region", { name: "Timeline" }).locator(".problem, .timeline-bad").count()).toBe(0);
    await page.getByText("1 prompt is held since the turn was interrupted.").waitFor();
    // A second press is a no-op: no other button has taken the place.
    expect(await actionsOf(page)).toEqual(before);
    await page.mouse.click(...before[0]!.middle);
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.getByRole("button", { name: "Run it" }).click();
    await entry(page, "After the interrupt.").waitFor();
    await turnsDone(page, 1);
  });

  it("a cancelled session shows the reason and takes no more prompts", async () => {
    const { page } = await desk.open();
    const id = await startSession(page, scriptTag([{ text: "Never.", gateBefore: "never-2" }]), {
      cwd: desk.world.folder(),
    });
    await waitForEntry(id, 0);
    await page.getByRole("button", { name: "Cancel session" }).click();
    const dialog = page.getByRole("dialog", { name: "Cancel this session?" });
    await dialog.getByText("The session stops the running turn and accepts no more prompts.").waitFor();
    await dialog.getByLabel(/^Reason/).fill("It was the wrong folder.");
    await dialog.getByRole("button", { name: "Cancel session" }).click();
    await entry(page, "Session cancelled by console: It was the wrong folder.").waitFor();
    await page.getByText("accepts no more prompts").waitFor();
    expect(await detail(id)).toMatchObject({ status: "cancelled", closed: { by: "console" } });
  });
});

it("a draft stays while the user looks elsewhere, and the focus is never lost", async () => {
  const { page } = await desk.open();
  const focused = async () => page.evaluate<string>("document.activeElement.localName");
  await startSession(page, `Half. ${scriptTag([{ text: "Never.", gateBefore: "never-3" }])}`, {
    cwd: desk.world.folder(),
  });
  await page.getByLabel("Prompt").fill("And then");
  // Shortcut letters are ignored inside a choice.
  await page.getByRole("radio", { name: "Into this turn" }).focus();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.getByRole("link", { name: /^Half\./ }).click();
  await expect.poll(async () => page.getByLabel("Prompt").inputValue()).toBe("And then");
  // The heading changes when the session is loaded: wait for the name.
  await page.getByRole("heading", { level: 1, name: /^Half/ }).waitFor();
  await expect.poll(focused).toBe("h1");
  // Text typed during sending belongs to the next prompt.
  await page.route("**/reply", async (route) => {
    await page.getByLabel("Prompt").fill("Then this");
    await route.continue();
  });
  const sent = page.waitForResponse("**/reply");
  await page.getByRole("button", { name: "Send" }).click();
  expect((await sent).ok()).toBe(true);
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  expect(await page.getByLabel("Prompt").inputValue()).toBe("Then this");
  await page.unroute("**/reply");
  await page.getByRole("button", { name: "Cancel session" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel session" }).click();
  await page.getByText("accepts no more prompts").waitFor();
  await expect.poll(focused).toBe("button");
});

it("a session can be renamed and deleted", async () => {
  const { page } = await desk.open();
  const words = "Short: see [the notes](docs/notes.md).";
  const id = await startSession(page, scriptTag([{ text: words }]), { cwd: desk.world.folder() });
  await turnsDone(page, 1);
  // A browser cannot open a file of the agent: the path is shown without a link.
  await entry(page, "Short: see the notes (docs/notes.md).").waitFor();
  expect(await page.getByRole("link", { name: "the notes" }).count()).toBe(0);
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByLabel("Title of the session").fill("A short one");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { level: 1, name: "A short one" }).waitFor();
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  const list = page.getByRole("list", { name: /^Sessions/ });
  await list.getByRole("link", { name: "A short one" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete this session?" });
  await dialog.getByRole("button", { name: "Back" }).click();
  await expect.poll(async () => dialog.count()).toBe(0);
  expect(await detail(id)).toMatchObject({ title: "A short one" });
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.waitForURL(/#\/sessions$/);
  await expect.poll(async () => list.getByRole("link", { name: "A short one" }).count()).toBe(0);
  expect((await desk.api.ask(`sessions/${id}`)).status).toBe(404);
});

it("files are rewound to their state before a prompt, after a preview of the change", async () => {
  const { page } = await desk.open();
  const cwd = desk.world.folder();
  const file = join(cwd, "notes.txt");
  writeFileSync(file, "as it was\n");
  const script = [
    { tools: [{ name: "Read", input: { file_path: file } }] },
    { tools: [{ name: "Edit", input: { file_path: file, old_string: "as it was", new_string: "changed" } }] },
    { text: "Changed." },
  ];
  await startSession(page, scriptTag(script), { cwd, mode: "Accept edits" });
  await turnsDone(page, 1);
  expect(readFileSync(file, "utf8")).toBe("changed\n");
  await page.getByRole("button", { name: /^Rewind files/ }).click();
  const dialog = page.getByRole("dialog", { name: /^Rewind files/ });
  await dialog.getByText("notes.txt").waitFor();
  expect(readFileSync(file, "utf8")).toBe("changed\n");
  await dialog.getByRole("button", { name: "Rewind files" }).click();
  await expect.poll(() => readFileSync(file, "utf8")).toBe("as it was\n");
  await expect.poll(async () => dialog.count()).toBe(0);
});

describe("a server that ends", () => {
  it.each(["SIGTERM", "SIGKILL"] as const)(
    "the page shows a server ended by %s as gone; after its return, the log continues without gaps, repeats or sign-in",
    async (signal) => {
      const opened = await desk.open({ hasClock: true });
      const { page } = opened;
      const echo = { name: "Bash", input: { command: "echo here", description: "Say so" } };
      const script = [
        { text: "I begin.", tools: [echo] },
        { text: "Never.", gateBefore: `gone-${signal}` },
      ];
      const id = await startSession(page, scriptTag(script), { cwd: desk.world.folder() });
      await waitForEntry(id, 1);
      await entry(page, "echo here").first().waitFor();
      opened.allowFailures(/net::ERR_|status of 50\d/);
      desk.http.signal(signal);
      await page.getByText("The server does not answer.").waitFor();
      await entry(page, "I begin.").waitFor();
      await desk.http.exited;
      await desk.comeBack();
      await page.getByText("The server is back.").waitFor();
      await entry(page, /Turn (lost|failed|interrupted)/).waitFor();
      await sendPrompt(page, scriptTag([{ text: "And on it goes." }]));
      await entry(page, "And on it goes.").waitFor();
      await turnsDone(page, 1);
      // The notice disappears after 5 s.
      await page.clock.fastForward(5_000);
      await expect.poll(async () => page.getByText("The server is back.").count()).toBe(0);
      const seen = await shownEventIds(page);
      const other = await desk.open({ hash: `#/sessions/${id}` });
      await turnsDone(other.page, 1);
      expect(seen).toEqual(await shownEventIds(other.page));
      expect(seen).toEqual([...new Set(seen)]);
    },
  );
});

/** Moves the focus to `target` with the Tab key alone. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < 80; presses++) {
    if ((await target.and(page.locator(":focus")).count()) > 0) return;
    await page.keyboard.press("Tab");
  }
  throw new Error("the keyboard does not get there");
}

it("a user without a mouse signs in, starts a session, allows its request and replies", async () => {
  const { page } = await desk.open({ token: "" });
  const cwd = desk.world.folder();
  const file = join(cwd, "by-keyboard");
  await tabTo(page, page.getByLabel("Access token"));
  await page.keyboard.type(desk.http.token);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation").waitFor();
  const task = page.getByLabel("What is to be done?");
  // The page may show its navigation before it handles keys.
  await expect
    .poll(async () => {
      await page.keyboard.press("n");
      return task.isVisible();
    })
    .toBe(true);
  await tabTo(page, task);
  await page.keyboard.insertText(toolCalls([writeCall(file)]));
  await tabTo(page, page.getByLabel("Directory", { exact: true }));
  await page.keyboard.insertText(cwd);
  await page.keyboard.press("Control+Enter");
  const card = cards(page, "Claude Code asks to write a file");
  await tabTo(page, card);
  await expect
    .poll(async () => {
      await page.keyboard.press("a");
      return existsSync(file);
    })
    .toBe(true);
  await turnsDone(page, 1);
  await tabTo(page, page.getByLabel("Prompt"));
  await page.keyboard.insertText(scriptTag([{ text: "By keyboard." }]));
  await page.keyboard.press("Control+Enter");
  await entry(page, "By keyboard.").waitFor();
  await turnsDone(page, 2);
  await page.keyboard.press("Tab");
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await page.getByRole("heading", { name: "Approvals" }).waitFor();
});
