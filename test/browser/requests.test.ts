import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { waitForNoCards, cards, entry, press, startSession } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";

/** Answers requests on the page: checks that the tool has run or not, and that the timeline names the approver. */

/** `real`: the real Claude Code, for the main story. `desk`: the stand-in, for the other kinds of answers. */
let real: Desk;
let desk: Desk;
beforeAll(async () => {
  [real, desk] = await Promise.all([openDesk({ agent: "real" }), openDesk()]);
});
afterEach(async (test) => {
  for (const each of [real, desk]) await each.clear(test);
});
afterAll(async () => Promise.all([real, desk].map(async (each) => each.close())));

/** Waits for "Turn done" and until `waitForNoCards`. */
const allDone = async (page: Page) => {
  await entry(page, "Turn done").last().waitFor();
  await waitForNoCards(page);
};

it("a session is started from the form, its request allowed, and the file is written", async () => {
  const { page } = await real.open({ hasClock: true });
  const cwd = real.world.folder();
  const file = join(cwd, "hello.txt");
  const id = await startSession(page, `Write hello. ${toolCalls([writeCall(file)])}`, { cwd });
  const card = cards(page, "Claude Code asks to write a file");
  // The file does not exist, so that no content is lost, and the text must not claim a loss.
  await card.getByText("hello.txt is written as a whole: existing content is lost").waitFor();
  expect(existsSync(file)).toBe(false);
  await press(card, "Allow");
  await allDone(page);
  expect(readFileSync(file, "utf8")).toBe("hello");
  await entry(page, /Allowed in the console:.*hello\.txt/).waitFor();
  await entry(page, "Over.").waitFor();
  expect(await real.api.get(`sessions/${id}`)).toMatchObject({ cwd, status: "idle" });
  const written = entry(page, /done Write.*hello\.txt/);
  await written.getByText("Write", { exact: true }).click();
  await written.getByText("hello", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page
    .getByRole("list", { name: /^Sessions/ })
    .getByRole("link", { name: /^Write hello\./ })
    .waitFor();
});

it("a denial reaches Claude Code with its message, and the tool does not run", async () => {
  const { page } = await desk.open({ hasClock: true });
  const cwd = desk.world.folder();
  const file = join(cwd, "secret.txt");
  const id = await startSession(page, toolCalls([writeCall(file)]), { cwd });
  const card = cards(page);
  await press(card, "Deny…");
  await card.getByLabel(/^Message to Claude Code/).fill("Not there: use the notes folder.");
  await press(card, "Deny");
  await allDone(page);
  expect(existsSync(file)).toBe(false);
  await entry(page, /Denied in the console:/).waitFor();
  expect(desk.world.transcript(id)).toContain("Not there: use the notes folder.");
});

it("an input can be edited before it is allowed, and invalid JSON is not sent", async () => {
  const { page } = await desk.open({ hasClock: true });
  const cwd = desk.world.folder();
  const file = join(cwd, "greeting.txt");
  await startSession(page, toolCalls([writeCall(file)]), { cwd });
  const card = cards(page);
  await press(card, "Edit input…");
  const input = card.getByLabel("Input, as JSON");
  await input.fill("x");
  // Reads the selection at the first `aria-invalid`, because a user who sees the mark may type at once.
  const selected = page.evaluate(`new Promise((resolve) => {
    const field = document.querySelector(".requests-card textarea");
    const read = () => resolve([field.ariaInvalid, field.selectionStart, field.selectionEnd]);
    new MutationObserver(read).observe(field, { attributeFilter: ["aria-invalid"] });
  })`);
  await press(card, "Allow with changes");
  expect(await selected).toEqual(["true", 0, 1]);
  await card.getByRole("alert").waitFor();
  await input.fill(JSON.stringify({ file_path: file, content: "hello from the console" }));
  await press(card, "Allow with changes");
  await allDone(page);
  expect(readFileSync(file, "utf8")).toBe("hello from the console");
});

it("a tool allowed for the session is not asked again until the permission is revoked", async () => {
  const { page } = await desk.open({ hasClock: true });
  const cwd = desk.world.folder();
  const touch = (name: string) => ({ name: "Bash", input: { command: `touch ${name}`, description: "Make a file" } });
  const id = await startSession(page, toolCalls([touch("one"), touch("one")]), { cwd });
  const card = cards(page, "Claude Code asks to run a command");
  await press(card, "Edit input…");
  await card
    .getByText("Deny rules are checked again, but cd, $, globs and backslashes hide files from them.")
    .waitFor();
  await press(card, "Cancel");
  await press(card, "Allow for session");
  await allDone(page);
  expect(existsSync(join(cwd, "one"))).toBe(true);
  expect(await entry(page, /Allowed in the console:/).count()).toBe(1);
  expect(await entry(page, /Allowed by a rule:/).count()).toBe(1);
  await page.getByText(cwd).first().click();
  const remembered = page.getByRole("region", { name: "Remembered answers" });
  await remembered.getByText("Bash(touch one").first().waitFor();
  await remembered.getByRole("button", { name: /^Revoke Bash\(touch/ }).click();
  await expect.poll(async () => remembered.count()).toBe(0);
  expect(await desk.api.get(`sessions/${id}`)).toMatchObject({ remembered: [] });
  await page.getByLabel("Prompt").fill(toolCalls([touch("one")]));
  await page.getByRole("button", { name: "Send" }).click();
  await press(cards(page), "Allow");
  await expect.poll(async () => entry(page, "Turn done").count()).toBe(2);
});

const QUESTIONS = [
  {
    question: "Which library?",
    header: "Library",
    multiSelect: false,
    options: [
      { label: "Fast", description: "The quick one" },
      { label: "Small", description: "The light one" },
    ],
  },
  {
    question: "Which parts?",
    header: "Parts",
    multiSelect: true,
    options: [
      { label: "Server", description: "All that listens" },
      { label: "Client", description: "All that asks" },
    ],
  },
];

it("questions are answered by choice and in free text, and a missing answer is named", async () => {
  const { page } = await desk.open({ hasClock: true });
  const id = await startSession(page, toolCalls([{ name: "AskUserQuestion", input: { questions: QUESTIONS } }]), {
    cwd: desk.world.folder(),
  });
  const card = cards(page, "Claude Code has 2 questions");
  const parts = card.getByRole("group", { name: /Which parts\?/ });
  await parts.getByRole("checkbox", { name: /^Server/ }).check();
  await parts.getByRole("checkbox", { name: /^Client/ }).check();
  const library = card.getByRole("group", { name: /Which library\?/ });
  const missing = library.getByText("This question has no answer yet.");
  await press(card, "Send answers", missing);
  await library.getByLabel("Your own answer").fill("Neither: write it yourself");
  await press(card, "Send answers");
  await allDone(page);
  const told = desk.world.transcript(id);
  for (const said of ["Neither: write it yourself", "Server", "Client"]) expect(told).toContain(said);
  await entry(page, /Answered in the console:/).waitFor();
});

it("a plan is sent back with feedback, and then approved", async () => {
  const { page } = await desk.open({ hasClock: true });
  const cwd = desk.world.folder();
  const id = await startSession(page, scriptTag([{ text: "I think." }]), { cwd, mode: "Plan" });
  await allDone(page);
  // File into which Claude Code tells the model to write its plan.
  const [, planFile = ""] = /"planFilePath":"([^"]+)"/.exec(desk.world.transcript(id)) ?? [];
  const plan = "# First things first\n\n1. Read everything.\n2. Change **one** line.";
  const show = { name: "ExitPlanMode", input: {} };
  const script = [
    { tools: [{ name: "Write", input: { file_path: planFile, content: plan } }] },
    { tools: [show] },
    { text: "With tests, then.", tools: [show] },
    { text: "I begin." },
  ];
  await page.getByLabel("Prompt").fill(scriptTag(script));
  await page.getByRole("button", { name: "Send" }).click();
  const card = cards(page, "Claude Code has made a plan");
  await card.getByRole("heading", { name: "First things first" }).waitFor();
  await press(card, "Keep planning…");
  await card.getByLabel(/^What to change/).fill("The tests are missing.");
  await press(card, "Keep planning");
  await entry(page, "With tests, then.").waitFor();
  await press(card, "Approve plan");
  await entry(page, "I begin.").waitFor();
  await expect.poll(async () => entry(page, "Turn done").count()).toBe(2);
  expect(desk.world.transcript(id)).toContain("The tests are missing.");
  expect(await desk.api.get(`sessions/${id}`)).toMatchObject({ permissionMode: "default" });
});
