import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ daemon: "auto" });
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const say = (text: string): string => `${text}? ${scriptTag([{ text }])}`;

/** Number of images in the last model request whose user text includes `text`. */
function imagesWith(text: string) {
  return world.model.requests.findLast(({ lastUserText }) => lastUserText.includes(text))?.images;
}

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("`attachments` of `claude_code` and `claude_code_reply`", () => {
  it("an attachment reaches the model as an image, by path and by data", async () => {
    const cwd = world.folder();
    writeFileSync(join(cwd, "a.png"), Buffer.from(PNG, "base64"));
    const both = [{ path: "a.png" }, { data: PNG, mediaType: "image/png" }];
    const { sessionId } = await server.call("claude_code", {
      prompt: say("images"),
      cwd,
      attachments: both,
      waitMs: 40_000,
    });
    expect(imagesWith("images?")).toBe(2);
    await server.call("claude_code_reply", {
      sessionId,
      prompt: say("more"),
      attachments: [both[0]],
      waitMs: 40_000,
    });
    expect(imagesWith("more?")).toBe(3);
  });

  it("an attachment is refused with the reason if it is invalid or outside --allow-dir", async () => {
    const cwd = world.folder();
    writeFileSync(join(cwd, "a.txt"), "hello");
    const begin = { prompt: say("x"), cwd };
    const text = await server.refusal("claude_code", { ...begin, attachments: [{ path: "a.txt" }] });
    expect(text.text).toContain("attachments[0]: is not a PNG, JPEG, GIF or WebP image. Convert it to one of these.");
    const missing = await server.refusal("claude_code", { ...begin, attachments: [{ path: "b.png" }] });
    expect(missing).toMatchObject({ code: "INVALID_ARGUMENT" });
    const wrong = await server.refusal("claude_code", {
      ...begin,
      attachments: [{ data: PNG, mediaType: "image/gif" }],
    });
    expect(wrong.text).toContain("attachments[0].mediaType");

    const outside = join(world.folder(), "b.png");
    writeFileSync(outside, Buffer.from(PNG, "base64"));
    const fenced = await world.server({ args: ["--allow-dir", cwd] });
    const refused = await fenced.refusal("claude_code", { ...begin, attachments: [{ path: outside }] });
    expect(refused.text).toContain("--allow-dir");
  });
});
