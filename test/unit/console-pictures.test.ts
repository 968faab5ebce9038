import { describe, expect, it } from "vitest";
import { readRaster } from "../../console/src/parts/raster.ts";
import { shownEvent } from "../../src/console/shown-event.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import { gif, png, SVG } from "../kit/pictures.ts";
import { findCall, toolCall, fold, toolResult, message } from "../kit/browser/timeline.ts";

const base64 = (...parts: readonly (string | readonly number[])[]) =>
  Buffer.concat(
    parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))),
  ).toString("base64");
const webp = (kind: string, bytes: readonly number[]) => base64("RIFF\0\0\0\0WEBP", kind, [0, 0, 0, 0], bytes);
const RED = [255, 0, 0] as const;

describe("recognition of pictures by their bytes", () => {
  it.each([
    ["png", png(3, 2, RED), 3, 2],
    ["gif", gif(5, 4), 5, 4],
    ["gif", gif(1, 1, [700, 600]), 700, 600],
    [
      "jpeg",
      base64([0xff, 0xd8, 0xff, 0xe0, 0, 4, 9, 9, 0xff, 0xff, 0xc4, 0, 2, 0xff, 0xc2, 0, 8, 8, 1, 2, 3, 4, 1]),
      772,
      258,
    ],
    ["webp", webp("VP8 ", [0, 0, 0, 0x9d, 1, 0x2a, 0x90, 1, 0x2c, 1]), 400, 300],
    ["webp", webp("VP8L", [0x2f, 0x8f, 0xc1, 0x4a, 0]), 400, 300],
    ["webp", webp("VP8X", [0, 0, 0, 0, 0x8f, 1, 0, 0x2b, 1, 0]), 400, 300],
  ])("type and size of a picture are read from its bytes: %s", (type, data, width, height) => {
    expect(readRaster(data).raster).toEqual({ mediaType: `image/${type}`, width, height });
  });

  it.each([
    ["an SVG", SVG, /not a PNG/],
    ["an HTML page", base64("<!doctype html><script>1</script>"), /not a PNG/],
    ["empty data", "", /not a PNG/],
    ["invalid base64", "?!", /not a PNG/],
    ["a truncated header", png(3, 2, RED).slice(0, 24), /not a PNG/],
    ["a JPEG without a size", base64([0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff]), /not a PNG/],
    ["an image without pixels", png(1, 1, RED, [0, 5]), /0 × 5 pixels/],
    ["an image of gigabytes", png(1, 1, RED, [30_000, 30_000]), /30000 × 30000 pixels/],
    ["a long line of pixels", png(1, 1, RED, [1, 20_000]), /1 × 20000 pixels/],
    ["a frame of gigabytes", gif(1, 1, [16_000, 16_000]), /16000 × 16000 pixels/],
    ["a large file", "A".repeat(17_000_000), /12 MB/],
  ])("%s is refused as a picture", (_, data, why) => {
    expect(() => readRaster(data)).toThrow(why);
  });
});

const LONG = "A".repeat(30_000);
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: LONG } };

describe("pictures in a log", () => {
  it("a picture in a log is named by its path in the event, beside the text of its item", () => {
    const result = { type: "tool_result", tool_use_id: "b", content: [image] };
    const items = fold(
      toolCall("a", "Read"),
      toolResult("a", [{ type: "text", text: "Two." }, image, image]),
      toolCall("b", "Read"),
      message({ type: "user", message: { content: [image, result] }, parent_tool_use_id: null }),
      {
        type: "prompt.queued",
        data: { promptId: "p", text: "See.", attachments: [{ mediaType: "image/png", data: LONG }] },
      },
    );
    const content = ["data", "message", "message", "content"];
    const at = (eventId: number, ...path: (string | number)[]) => ({
      eventId,
      at: [...content, ...path, "source", "data"],
    });
    expect(findCall(items, "a")).toMatchObject({
      output: "Two.",
      pictures: [at(2, 0, "content", 1), at(2, 0, "content", 2)],
    });
    expect(findCall(items, "b")).toMatchObject({ output: "", pictures: [at(4, 1, "content", 0)] });
    expect(items.slice(2)).toMatchObject([
      { kind: "line", text: "An image", pictures: [at(4, 0)] },
      { kind: "prompt", pictures: [{ eventId: 5, at: ["data", "attachments", 0, "data"] }] },
    ]);
  });

  it("text that only claims to be a picture is sent unchanged, because a person may decide by the text", () => {
    const input = { type: "base64", mimeType: "image/png", data: "rm -r ~ ; ".repeat(30) };
    const event = { id: 1, at: 1, type: "permission.asked", data: { input } } as unknown as StoredEvent;
    expect(shownEvent(event)).toEqual(event);
  });

  it.each([
    ["an image of a tool", image],
    ["a PDF", { type: "document", source: { type: "base64", media_type: "application/pdf", data: LONG } }],
    ["an attachment", { mediaType: "image/png", data: LONG }],
    ["a block of an MCP server", { type: "image", mimeType: "image/png", data: LONG }],
    ["a file that a tool reports", { type: "image", file: { base64: LONG, type: "image/png" } }],
  ])("an event is sent without the base64 data of %s, and does not count as cut", (_, content) => {
    const event = { id: 1, at: 1, type: "message", data: { message: { type: "user", content } } } as StoredEvent;
    const shown = shownEvent(event);
    expect(shown).not.toHaveProperty("cut");
    expect(JSON.stringify(shown)).toContain("[30,000 characters of base64]");
    expect(JSON.stringify(shown).length).toBeLessThan(300);
    expect(JSON.stringify(event)).toContain(LONG);
    const both = { ...event, data: { message: { type: "user", content, text: LONG } } } as StoredEvent;
    expect(shownEvent(both)).toMatchObject({ cut: true });
    expect(JSON.stringify(shownEvent(both)).length).toBeLessThan(10_400);
  });
});
