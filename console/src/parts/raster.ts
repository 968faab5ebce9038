/** Reads type and size of pictures from their bytes, because agents and tools may state wrong types. */

export interface Raster {
  readonly mediaType: "image/gif" | "image/jpeg" | "image/png" | "image/webp";
  /** Size of the decoded picture, px. */
  readonly width: number;
  readonly height: number;
}

/** Limits for decoding: bytes of the file, px per side, px in all. A small file can decode to gigabytes. */
const MAX_BYTES = 12_000_000;
const [MAX_SIDE, MAX_PIXELS] = [16_384, 40_000_000];

/** Bytes of a picture that is safe to show. Throws an Error with the reason for any other. */
export function readRaster(base64: string): { readonly bytes: Uint8Array<ArrayBuffer>; readonly raster: Raster } {
  if (base64.length * 0.75 > MAX_BYTES) throw new Error("It is larger than 12 MB.");
  const bytes = bytesOf(base64);
  const raster = bytes && readHeader(bytes);
  if (!bytes || !raster) throw new Error("It is not a PNG, JPEG, GIF or WebP.");
  const { height, width } = raster;
  const isShown = width > 0 && height > 0 && width <= MAX_SIDE && height <= MAX_SIDE && width * height <= MAX_PIXELS;
  if (!isShown) throw new Error(`It has ${String(width)} × ${String(height)} pixels: 40 million are shown at most.`);
  return { bytes, raster };
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function readHeader(bytes: Uint8Array): Raster | undefined {
  const view = new DataView(bytes.buffer);
  const begins = (text: string, at = 0) => text === String.fromCharCode(...bytes.subarray(at, at + text.length));
  try {
    if (begins("\u0089PNG\r\n\u001A\n") && begins("IHDR", 12))
      return { mediaType: "image/png", width: view.getUint32(16), height: view.getUint32(20) };
    if (begins("GIF87a") || begins("GIF89a")) return { mediaType: "image/gif", ...sizeOfGif(view) };
    if (begins("\u00FF\u00D8\u00FF")) return { mediaType: "image/jpeg", ...sizeOfJpeg(view) };
    if (begins("RIFF") && begins("WEBP", 8)) return { mediaType: "image/webp", ...sizeOfWebp(view) };
  } catch (error) {
    // The file ends inside the header.
    if (!(error instanceof RangeError)) throw error;
  }
  return undefined;
}

type Size = Pick<Raster, "height" | "width">;

/** Includes the first frame, which may exceed the logical screen. */
function sizeOfGif(view: DataView): Size {
  const flags = view.getUint8(10);
  let at = 13 + (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
  while (view.getUint8(at) === 0x21) {
    at += 2;
    while (view.getUint8(at) !== 0) at += view.getUint8(at) + 1;
    at += 1;
  }
  const side = (ofAll: number, start: number, length: number) =>
    Math.max(view.getUint16(ofAll, true), view.getUint16(at + start, true) + view.getUint16(at + length, true));
  return { width: side(6, 1, 5), height: side(8, 3, 7) };
}

/** Skips fill bytes between segments. */
function sizeOfJpeg(view: DataView): Size {
  for (let at = 2; ;) {
    const marker = view.getUint8(at + 1);
    if (view.getUint8(at) !== 0xff || marker === 0xff) at += 1;
    else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    else at += 2 + view.getUint16(at + 2);
  }
}

function sizeOfWebp(view: DataView): Size {
  const kind = view.getUint8(15);
  if (kind === "X".charCodeAt(0)) {
    const side = (at: number) => 1 + view.getUint16(at, true) + view.getUint8(at + 2) * 0x1_00_00;
    return { width: side(24), height: side(27) };
  }
  if (kind === "L".charCodeAt(0)) {
    const bits = view.getUint32(21, true);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
}
