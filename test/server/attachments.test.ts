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

/** Number of images that the model got with the prompt of this text. */
function imagesWith(text: string) {
  return world.model.requests.findLast(({ lastUserText }) => lastUserText.includes(text))?.images;
}

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("`attachments` of `claude_code` and `claude_code_reply`", () => {
  it("reach the model as images: a file, and the bytes themselves", async () => {
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

  it("are refused by name when they are invalid or outside the folders of the server", async () => {
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
