import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import type { SessionEvent } from "../../src/domain/event.ts";
import { toolCalls } from "../kit/people/fake-user.ts";
import { gif, png, SVG } from "../kit/pictures.ts";
import { addSession, id, NOW, assistantEvent } from "../kit/clients/sessions-command.ts";
import { entry } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";

/** Pictures from tools are drawn as pixels, for raster formats alone. */

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk({ agent: "real" });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => desk.close());

const GREEN = [0, 128, 0] as const;

/** Returns the size of each picture as drawn, and its first pixel. */
const drawn = async (page: Page) =>
  page.evaluate<number[][]>(`[...document.querySelectorAll("canvas")].map((canvas) => {
    const copy = new OffscreenCanvas(1, 1).getContext("2d");
    copy.drawImage(canvas, 0, 0, 1, 1, 0, 0, 1, 1);
    return [canvas.width, canvas.height, ...copy.getImageData(0, 0, 1, 1).data];
  })`);
const pictures = (page: Page) => page.getByRole("img", { name: /^Image, \d/ });

it("an image that Claude Code has read is shown in its call, without a note about omitted text", async () => {
  const cwd = desk.world.folder();
  writeFileSync(join(cwd, "shot.png"), Buffer.from(png(300, 200, GREEN), "base64"));
  const read = { name: "Read", input: { file_path: join(cwd, "shot.png") } };
  const session = await desk.api.start(`Look at the screenshot. ${toolCalls([read])}`, cwd);
  await desk.api.end(session);
  const window = await desk.open({ hash: `#/sessions/${session}` });
  const { page } = window;
  await entry(page, "Turn done").waitFor();
  await page.getByText("Read", { exact: true }).click();
  const picture = page.getByRole("img", { name: "Image, 300 × 200" });
  await picture.waitFor();
  expect(await drawn(page)).toEqual([[300, 200, ...GREEN, 255]]);
  expect(await page.getByText("Some text is not shown.").count()).toBe(0);
  expect(await page.getByText("[image]").count()).toBe(0);
  expect(await window.violations()).toEqual([]);
  await window.picture("picture", false);
});

/** Encodes an image in a format that Chromium can write. */
const encodedImage = async (page: Page, type: string) =>
  page.evaluate<string>(`{
    const canvas = Object.assign(document.createElement("canvas"), { width: 40, height: 30 });
    const context = canvas.getContext("2d");
    context.fillStyle = "#008000";
    context.fillRect(0, 0, 40, 30);
    canvas.toDataURL(${JSON.stringify(type)}).split(",")[1];
  }`);

const result = (toolUseId: string, data: string, mediaType: string): SessionEvent => {
  const source = { type: "base64", media_type: mediaType, data };
  const content = [{ type: "tool_result", tool_use_id: toolUseId, content: [{ type: "image", source }] }];
  return { type: "message", data: { message: { type: "user", message: { content }, parent_tool_use_id: null } } };
};

/** Records how many pictures are decoded at once from now on. */
const watched = `{
  const make = createImageBitmap;
  let open = 0;
  globalThis.mostAtOnce = 0;
  globalThis.createImageBitmap = async (...args) => {
    mostAtOnce = Math.max(mostAtOnce, (open += 1));
    return make(...args).finally(() => (open -= 1));
  };
}`;

it("only raster formats are shown, as pixels, bounded in size and decoded one at a time", async () => {
  const window = await desk.open();
  const { page } = window;
  const [jpeg, webp] = [await encodedImage(page, "image/jpeg"), await encodedImage(page, "image/webp")];
  const shown = [png(40, 30, GREEN), gif(1, 1), jpeg, webp, png(4_000, 10, GREEN)];
  const refused = [SVG, png(1, 1, GREEN, [30_000, 30_000]), png(2, 2, GREEN).slice(0, 60), "", "PGI+"];
  const events = [...shown, ...refused].map((data, at) =>
    result(String(at), data, at % 2 ? "image/png" : "image/svg+xml"),
  );
  const attachment = { mediaType: "image/png" as const, data: png(7, 6, GREEN) };
  const prompt = { promptId: "p", text: "See this.", attachments: [attachment] };
  const session = id(7);
  await desk.change(async (node) =>
    addSession(node, session, {
      at: NOW,
      events: [{ type: "prompt.queued", data: prompt }, ...events, assistantEvent("Seen.")],
    }),
  );
  await window.go(`#/sessions/${session}`);
  await entry(page, "Seen.").waitFor();
  await page.evaluate(watched);
  await page.evaluate(
    'document.querySelectorAll(".timeline-timeline details").forEach((each) => { each.open = true; })',
  );
  await expect.poll(async () => pictures(page).count()).toBe(shown.length + 1);
  const refusals = page.getByText("The image cannot be shown.");
  await expect.poll(async () => refusals.count()).toBe(refused.length);
  const all = await drawn(page);
  expect(all.map((each) => each.slice(0, 2))).toEqual([
    [7, 6],
    [40, 30],
    [1, 1],
    [40, 30],
    [40, 30],
    [1_600, 4],
  ]);
  expect(all[1]).toEqual([40, 30, ...GREEN, 255]);
  const why = (await refusals.allInnerTexts()).map((text) => text.replace("The image cannot be shown. ", ""));
  const none = "It is not a PNG, JPEG, GIF or WebP.";
  expect(why).toEqual([
    none,
    "It has 30000 × 30000 pixels: 40 million are shown at most.",
    "It is damaged.",
    none,
    none,
  ]);
  expect(await page.evaluate("mostAtOnce")).toBe(1);
  // Only pixels have reached the page.
  expect(await page.locator("main :is(img, svg image, object, embed, iframe, picture, video)").count()).toBe(0);
  expect(await window.overhang()).toBeLessThanOrEqual(0);
});
