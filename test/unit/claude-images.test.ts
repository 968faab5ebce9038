import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { checkOrigin, checkPlaces, foldersBelow } from "../../src/claude/preflight/session-paths.ts";
import { readImages } from "../../src/claude/preflight/images.ts";
import type { AttachmentSource } from "../../src/domain/prompt.ts";

/** Files named by a session: images of a prompt, and the log of `debugFile`. */

const PNG = Buffer.from("\u0089PNG\r\n\u001A\nrest", "latin1");
const LARGE = Buffer.concat([PNG, Buffer.alloc(5 * 1024 * 1024)]);
let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-images-")));
  for (const folder of ["in/folder", "out"]) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, "in/a.png"), PNG);
  writeFileSync(join(root, "in/large.png"), LARGE);
  writeFileSync(join(root, "in/a.txt"), "text");
  writeFileSync(join(root, "out/b.png"), PNG);
  symlinkSync(join(root, "out/b.png"), join(root, "in/link.png"));
  symlinkSync(join(root, "out/none"), join(root, "in/dangling"));
});
afterAll(() => rmSync(root, { recursive: true }));

describe("an image of a prompt", () => {
  const data = (bytes: Buffer | string) => Buffer.from(bytes as string, "latin1").toString("base64");
  const read = async (source: AttachmentSource, roots: string[] = []) =>
    readImages([source], join(root, "in"), { roots, closed: [] });

  it.each([
    ["image/png", "\u0089PNG\r\n\u001A\n"],
    ["image/jpeg", "\u00FF\u00D8\u00FF"],
    ["image/gif", "GIF89a"],
    ["image/webp", "RIFF0000WEBP"],
  ] as const)("the type %s of an image is known by its bytes", async (mediaType, begin) => {
    expect(await read({ mediaType, data: data(begin) })).toEqual([{ mediaType, data: data(begin) }]);
  });

  it("an image is read from a file in the session's folder, also if folders are restricted", async () => {
    const image = [{ mediaType: "image/png", data: PNG.toString("base64") }];
    expect(await read({ path: "a.png" })).toEqual(image);
    expect(await read({ path: "a.png" }, [join(root, "in")])).toEqual(image);
    expect(await read({ path: "link.png" })).toEqual(image);
  });

  it.each<[string, AttachmentSource, string]>([
    [
      "of another type than `mediaType`",
      { mediaType: "image/gif", data: data(PNG.toString("latin1")) },
      "[0].mediaType: is image/gif",
    ],
    ["that is a text file", { path: "a.txt" }, "[0]: is not a PNG"],
    ["in a file above 5 MiB", { path: "large.png" }, "large.png is larger than 5242880 bytes"],
    ["above 5 MiB", { mediaType: "image/png", data: LARGE.toString("base64") }, "[0]: is larger than"],
    ["that is a folder", { path: "folder" }, "is not a file on the server's machine"],
    ["that does not exist", { path: "gone.png" }, "is not a file on the server's machine"],
  ])("an image %s is refused", async (_, source, problem) => {
    const error: unknown = await read(source).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(String(error)).toContain(problem);
  });

  it("an image outside the allowed folders is refused, also through a link", async () => {
    for (const path of ["../out/b.png", "link.png", "gone/../../out/none.png"])
      await expect(read({ path }, [join(root, "in")])).rejects.toThrow("outside the folders this server allows");
  });
});

describe("the file of the debug log", () => {
  const check = async (debugFile: string, roots: string[] = [join(root, "in")]) =>
    checkPlaces({ cwd: join(root, "in"), debugFile }, roots, []);

  it("a new or existing file in an allowed folder is taken for `debugFile`, by its real path", async () => {
    for (const name of ["new.log", "a.txt", "folder/../new.log"])
      expect((await check(name)).debugFile).toBe(join(root, "in", name));
    expect((await check("new.log", [])).debugFile).toBe("new.log");
  });

  it.each([
    ["folder", "is a folder"],
    ["dangling", "is a broken symbolic link"],
    ["link.png", "outside the folders"],
    ["../out/new.log", "outside the folders"],
    ["gone/new.log", "does not exist"],
  ])("`debugFile` %s is refused: %s", async (name, problem) => {
    await expect(check(name)).rejects.toThrow(problem);
  });
});

it("a transcript is continued only if its folder is allowed; the refusal does not name the folder", async () => {
  const roots = [join(root, "in")];
  await expect(checkOrigin("resume", join(root, "in/folder"), roots)).resolves.toBeUndefined();
  await expect(checkOrigin("resume", join(root, "out"), [])).resolves.toBeUndefined();
  for (const folder of [join(root, "out"), join(root, "in/../out"), undefined]) {
    const error: unknown = await checkOrigin("resume", folder, roots).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain("resume: the session was in a folder outside");
    expect(String(error)).not.toContain(join(root, "out"));
  }
});

it("the completion of a path offers at most 200 folders", async () => {
  for (let at = 0; at < 205; at += 1) mkdirSync(join(root, "out", `many-${String(at)}`));
  expect(await foldersBelow(join(root, "out/many"), { allowDirs: [] })).toHaveLength(200);
});
