import { Readable } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readPack, writePack, type Part } from "../../src/pack/container.ts";

/** The format of packed sessions: cut, changed and hostile files are refused. */

const LINE = "claude-agents-mcp session 1\n";
const CONTENT = { "manifest.json": "{}", "log.jsonl": "x".repeat(200_000), empty: "" };

async function* given(content: Readonly<Record<string, string>>): AsyncGenerator<Part> {
  for (const [name, text] of Object.entries(content))
    yield await Promise.resolve({ name, bytes: Readable.from([Buffer.from(text)]) });
}

async function packed(content: Readonly<Record<string, string>> = CONTENT): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const bytes of writePack(given(content))) all.push(bytes);
  return Buffer.concat(all);
}

/** Reads a file that arrives in pieces of `size` bytes. */
async function read(file: Buffer, size = 1_000): Promise<Record<string, string>> {
  const pieces = Array.from({ length: Math.ceil(file.length / size) }, (_, n) =>
    file.subarray(n * size, (n + 1) * size),
  );
  const found: Record<string, string> = {};
  for await (const { bytes, name } of readPack(Readable.from(pieces))) {
    const parts: Uint8Array[] = [];
    for await (const part of bytes) parts.push(part);
    found[name] = Buffer.concat(parts).toString();
  }
  return found;
}

/** Changes what is compressed. */
async function changed(change: (inner: Buffer) => Buffer): Promise<Buffer> {
  const file = await packed();
  return Buffer.concat([Buffer.from(LINE), gzipSync(change(gunzipSync(file.subarray(LINE.length))))]);
}

describe("the file of a packed session", () => {
  it("gives back every part, whatever the pieces in which the file arrives", async () => {
    const file = await packed();
    for (const size of [1, 7, 65_536, file.length]) expect(await read(file, size)).toEqual(CONTENT);
    expect(file.subarray(0, LINE.length).toString()).toBe(LINE);
  });

  it("is refused wherever it is cut", async () => {
    const file = await packed();
    for (const length of [0, 5, LINE.length, LINE.length + 4, file.length - 200, file.length - 8, file.length - 1])
      await expect(read(file.subarray(0, length))).rejects.toThrow(/^file: /);
    await expect(read(await changed((inner) => inner.subarray(0, -3)))).rejects.toThrow("it is cut");
    const end = (inner: Buffer) => inner.subarray(0, inner.lastIndexOf("end") - 4);
    await expect(read(await changed(end))).rejects.toThrow("it is cut");
  });

  it("is refused if a byte of a part was changed, or a part was removed", async () => {
    const flip = (inner: Buffer) => {
      inner.writeUInt8(0x79, inner.indexOf("xxxx") + 100);
      return inner;
    };
    await expect(read(await changed(flip))).rejects.toThrow('"log.jsonl" was changed');
    const without = await changed((inner) => inner.subarray(inner.indexOf("log.jsonl") - 4));
    await expect(read(without)).rejects.toThrow("its end does not fit");
    const more = await changed((inner) => Buffer.concat([inner, Buffer.from("more")]));
    await expect(read(more)).rejects.toThrow("its end does not fit");
  });

  it("is refused without its first line, with another version, or with other data behind the line", async () => {
    const file = await packed();
    await expect(read(file.subarray(3))).rejects.toThrow("file: is not a packed session");
    await expect(read(gzipSync("x"))).rejects.toThrow("file: is not a packed session");
    const newer = Buffer.from(LINE.replace("1", "2"));
    await expect(read(Buffer.concat([newer, file.subarray(LINE.length)]))).rejects.toThrow(
      "has version 2 of the format",
    );
    await expect(read(Buffer.from(`${LINE}no gzip`))).rejects.toThrow("its compressed data cannot be read");
  });

  it("lengths beyond the bounds are refused before any memory is taken for them", async () => {
    const huge = Buffer.alloc(4, 0xff);
    await expect(read(await changed(() => huge))).rejects.toThrow("a name has no valid length");
    const chunk = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from("a"), huge]);
    await expect(read(await changed(() => chunk))).rejects.toThrow("is too long");
  });
});
