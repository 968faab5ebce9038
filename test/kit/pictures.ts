import { crc32, deflateSync } from "node:zlib";

/** Pictures as files, in base64. */

type Color = readonly [red: number, green: number, blue: number];

/** Makes a picture of one color. `claimed`: size in the header, if different from the real size. */
export function png(width: number, height: number, color: Color, claimed: readonly [number, number] = [width, height]) {
  const header = Buffer.alloc(13);
  claimed.forEach((side, at) => header.writeUInt32BE(side, 4 * at));
  header.set([8, 2], 8);
  const row = Buffer.from([0, ...Array.from({ length: width }, () => color).flat()]);
  const rows = Buffer.concat(Array.from({ length: height }, () => row));
  const chunks = [chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([Buffer.from("\u0089PNG\r\n\u001A\n", "latin1"), ...chunks]).toString("base64");
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** Makes a picture of one pixel in a `frame` of its own size. */
export function gif(width: number, height: number, frame: readonly [number, number] = [width, height]): string {
  const bytes = Buffer.from("R0lGODlhAQABAIAAAP8AAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==", "base64");
  const at = bytes.indexOf(0x2c, 19);
  [width, height].forEach((side, place) => bytes.writeUInt16LE(side, 6 + 2 * place));
  frame.forEach((side, place) => bytes.writeUInt16LE(side, at + 5 + 2 * place));
  return bytes.toString("base64");
}

export const SVG = Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><script>alert(1)</script><image href="https://example.com/a.png"/></svg>`,
).toString("base64");
