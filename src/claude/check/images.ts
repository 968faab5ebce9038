import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { invalidArgument } from "../../domain/error.ts";
import type { Attachment, AttachmentSource } from "../../domain/prompt.ts";

/** What the API takes of one image, bytes. */
const IMAGE_MAX = 5 * 1024 * 1024;

type MediaType = Attachment["mediaType"];

/** How the files of each type begin, as Latin-1; of a WebP file the size stands between its two words. */
const BEGINNINGS: readonly (readonly [MediaType, readonly string[]])[] = [
  ["image/png", ["\u0089PNG\r\n\u001A\n"]],
  ["image/jpeg", ["\u00FF\u00D8\u00FF"]],
  ["image/gif", ["GIF87a", "GIF89a"]],
];

/** Reads what goes with a prompt. `check` says whether a file may be read. Throws INVALID_ARGUMENT naming the field. */
export async function readImages(
  sources: readonly AttachmentSource[],
  cwd: string,
  check: (field: string, path: string) => Promise<void>,
): Promise<Attachment[]> {
  const images: Attachment[] = [];
  for (const [index, source] of sources.entries()) {
    const field = `attachments[${String(index)}]`;
    const bytes =
      "path" in source ? await readImage(`${field}.path`, resolve(cwd, source.path), check) : decode(source);
    if (bytes.length > IMAGE_MAX)
      throw invalidArgument(field, `is larger than ${String(IMAGE_MAX)} bytes. Make it smaller.`);
    const mediaType = typeOf(bytes);
    if (!mediaType) throw invalidArgument(field, "is no PNG, JPEG, GIF or WebP image.");
    if ("mediaType" in source && source.mediaType !== mediaType) {
      throw invalidArgument(`${field}.mediaType`, `is ${source.mediaType}, but the image is ${mediaType}.`);
    }
    images.push({ mediaType, data: bytes.toString("base64") });
  }
  return images;
}

function decode({ data }: Extract<AttachmentSource, { data: string }>): Buffer {
  return Buffer.from(data, "base64");
}

async function readImage(
  field: string,
  path: string,
  check: (field: string, path: string) => Promise<void>,
): Promise<Buffer> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) throw invalidArgument(field, `${path} is no file on the server's machine.`);
  await check(field, path);
  // Nothing is read that would be refused for its size.
  if (found.size > IMAGE_MAX) throw invalidArgument(field, `${path} is larger than ${String(IMAGE_MAX)} bytes.`);
  return readFile(path).catch(() => {
    throw invalidArgument(field, `${path} cannot be read.`);
  });
}

function typeOf(bytes: Buffer): MediaType | undefined {
  const beginning = bytes.subarray(0, 12).toString("latin1");
  if (beginning.startsWith("RIFF") && beginning.endsWith("WEBP")) return "image/webp";
  return BEGINNINGS.find(([, words]) => words.some((word) => beginning.startsWith(word)))?.[0];
}
