import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import { resolve } from "node:path";
import { invalidArgument } from "../../domain/error.ts";
import type { Attachment, AttachmentSource } from "../../domain/prompt.ts";
import { fileAccess, open, otherwise, realpath, stat } from "../../security/files/limited.ts";
import { close, readParts } from "../../security/files/plain-file.ts";
import type { ProtectedPath } from "../../security/protected-paths.ts";
import { checkInside, isAllowed } from "./session-paths.ts";

/** Maximum size of an image for the API, bytes. */
const MAX_IMAGE = 5 * 1024 * 1024;

type MediaType = Attachment["mediaType"];

/** First characters of each type, as Latin-1. `typeOf` checks WebP, whose size stands between two words. */
const BEGINNINGS: readonly (readonly [MediaType, readonly string[]])[] = [
  ["image/png", ["\u0089PNG\r\n\u001A\n"]],
  ["image/jpeg", ["\u00FF\u00D8\u00FF"]],
  ["image/gif", ["GIF87a", "GIF89a"]],
];

/** Allowed places of images: inside `roots` ([] means anywhere), and never in `closed`. */
interface Sources {
  readonly roots: readonly string[];
  readonly closed: readonly ProtectedPath[];
}

/** Reads the images of a prompt. Throws INVALID_ARGUMENT naming the field. */
export async function readImages(
  sources: readonly AttachmentSource[],
  cwd: string,
  from: Sources,
): Promise<Attachment[]> {
  const images: Attachment[] = [];
  for (const [index, source] of sources.entries()) {
    const field = `attachments[${String(index)}]`;
    const bytes = "path" in source ? await readImage(`${field}.path`, resolve(cwd, source.path), from) : decode(source);
    if (bytes.length > MAX_IMAGE)
      throw invalidArgument(field, `is larger than ${String(MAX_IMAGE)} bytes. Make it smaller.`);
    const mediaType = typeOf(bytes);
    if (!mediaType) throw invalidArgument(field, "is not a PNG, JPEG, GIF or WebP image. Convert it to one of these.");
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

async function readImage(field: string, path: string, { closed, roots }: Sources): Promise<Buffer> {
  const place = await checkInside(field, path, roots, closed);
  const found = await stat(place).catch(otherwise(undefined, field));
  if (!found?.isFile())
    throw invalidArgument(field, `${path} is not a file on the server's machine. Name an existing image file.`);
  const file = await open(place, READ).catch(otherwise(undefined, field));
  if (!file) throw invalidArgument(field, `${path} cannot be read.`);
  try {
    if (roots.length > 0) await checkOpened(field, place, file, roots);
    // Checks the size before reading.
    const { size } = await fileAccess.run(place, async () => file.stat());
    if (size > MAX_IMAGE) throw invalidArgument(field, `${path} is larger than ${String(MAX_IMAGE)} bytes.`);
    const parts: Buffer[] = [];
    for await (const part of readParts(place, file, size)) parts.push(part);
    return Buffer.concat(parts);
  } finally {
    await close(place, file);
  }
}

/** Opens without blocking, because a pipe in place of the file would block the read. */
const READ = constants.O_RDONLY | (process.platform === "win32" ? 0 : constants.O_NONBLOCK);

/** Checks the opened file, because a folder of the path can have become a link meanwhile. */
async function checkOpened(field: string, place: string, file: fs.FileHandle, roots: readonly string[]): Promise<void> {
  const opened = await fileAccess.run(place, async () => file.stat({ bigint: true }));
  // Linux reports the path of the opened file; elsewhere the path is looked up again, which can be raced.
  const real =
    process.platform === "linux" ? await fs.readlink(`/proc/self/fd/${String(file.fd)}`) : await realpath(place);
  const there =
    process.platform === "linux" ? opened : await fileAccess.run(real, async () => fs.lstat(real, { bigint: true }));
  const isSame = opened.isFile() && there.ino === opened.ino && there.dev === opened.dev;
  if (isSame && (await isAllowed(real, roots))) return;
  throw invalidArgument(field, `${place} changed while it was being read. Try again.`);
}

function typeOf(bytes: Buffer): MediaType | undefined {
  const beginning = bytes.subarray(0, 12).toString("latin1");
  if (beginning.startsWith("RIFF") && beginning.endsWith("WEBP")) return "image/webp";
  return BEGINNINGS.find(([, words]) => words.some((word) => beginning.startsWith(word)))?.[0];
}
