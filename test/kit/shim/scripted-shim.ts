import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { encodeFrame, FrameReader } from "../../../src/shim/frame.ts";
import { type FromShim, readToShim, SHIM_PROTOCOL, type ToShim } from "../../../src/shim/protocol.ts";

/** The far end of an owner's connection: a test writes each message of the shim, including rare ones. */

export const SHIM_IDENTITY = { pid: 17, startedAt: "4711" };
export const HELLO: FromShim = { t: "hello", protocol: SHIM_PROTOCOL, ...SHIM_IDENTITY };

export interface ScriptedShim {
  readonly address: string;
  /** All messages from owners, with their bodies. */
  readonly received: { readonly message: ToShim; readonly body: string }[];
  /** Sends a message to the last connected owner. */
  say(message: FromShim, body?: string): void;
  /** Sends bytes that need not form a frame. */
  sayRaw(bytes: Buffer): void;
  /** Resolves with the first message of `kind`, past or future. */
  hears<Kind extends ToShim["t"]>(kind: Kind): Promise<Extract<ToShim, { t: Kind }>>;
  /** Ends all connections, like a shim that dies. */
  die(): void;
}

/** `answer` is called with each message and may return the reply. */
export async function scriptedShim(answer: (message: ToShim) => FromShim | Buffer | undefined): Promise<ScriptedShim> {
  const folder = mkdtempSync(join(tmpdir(), "scripted-shim-"));
  const address = join(folder, "s.shim");
  const sockets: Socket[] = [];
  const received: ScriptedShim["received"] = [];
  const waiting = new Set<() => void>();
  const sayRaw = (bytes: Buffer) => void sockets.at(-1)?.write(bytes);
  const say = (message: FromShim, body = "") => sayRaw(encodeFrame(message, Buffer.from(body)));
  const server = createServer((socket) => {
    sockets.push(socket);
    const reader = new FrameReader();
    socket
      .on("error", () => undefined)
      .on("data", (chunk: Buffer) => {
        for (const { body, header } of reader.push(chunk)) {
          const message = readToShim(header);
          received.push({ message, body: body.toString() });
          const said = answer(message);
          if (Buffer.isBuffer(said)) sayRaw(said);
          else if (said) say(said);
        }
        for (const look of waiting) look();
      });
  });
  server.listen(address);
  await once(server, "listening");
  const die = () => {
    for (const socket of sockets) socket.destroy();
  };
  afterAll(() => {
    die();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const hears = async <Kind extends ToShim["t"]>(kind: Kind) =>
    new Promise<Extract<ToShim, { t: Kind }>>((resolve) => {
      const look = () => {
        const isOfKind = (message: ToShim): message is Extract<ToShim, { t: Kind }> => message.t === kind;
        const found = received.map(({ message }) => message).find(isOfKind);
        if (!found) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  return { address, received, say, sayRaw, hears, die };
}
