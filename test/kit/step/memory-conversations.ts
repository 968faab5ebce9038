import { AppError } from "../../../src/domain/error.ts";
import type { Conversations } from "../../../src/engine/ports.ts";

/** A configuration folder in memory. Names of files as in `Conversations`. */
export class MemoryConversations implements Conversations {
  readonly files = new Map<string, string>();

  append(name: string, ...lines: string[]): void {
    this.files.set(name, (this.files.get(name) ?? "") + lines.map((line) => `${line}\n`).join(""));
  }

  list: Conversations["list"] = async ({ transcriptId }) => {
    const names = [...this.files.keys()].filter((name) => name.includes(transcriptId));
    const files = names.map((name) => ({
      name,
      size: Buffer.byteLength(this.files.get(name) ?? ""),
      changedAt: 0,
    }));
    return Promise.resolve({ files, leftOut: [] });
  };

  read: Conversations["read"] = (_place, name, { length, offset = 0 } = {}) => {
    const bytes = Buffer.from(this.files.get(name) ?? "");
    if (!this.files.has(name)) throw new AppError("INVALID_ARGUMENT", `name: there is no file ${name}.`);
    return inParts(bytes.subarray(offset, length === undefined ? undefined : offset + length));
  };

  write: Conversations["write"] = async (_place, files) => {
    const written: [string, string][] = [];
    for await (const { name, parts } of files) {
      const all: Uint8Array[] = [];
      for await (const part of parts) all.push(part);
      written.push([name, Buffer.concat(all).toString()]);
    }
    for (const [name, content] of written) this.files.set(name, content);
  };
}

/** Bytes of a part: few, so that every file has several. */
const PART = 7;

async function* inParts(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += PART) yield await Promise.resolve(bytes.subarray(at, at + PART));
}
