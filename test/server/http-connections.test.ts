import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { HttpConnection, HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Connections without a token, at the default limit of file descriptors on macOS. */

const FEW_DESCRIPTORS = ["bash", "-c", 'ulimit -n 256; exec "$@"', "bash"];

const world = useWorld({ agent: "stand-in" });

const descriptors = ({ pid }: HttpServer): number => readdirSync(`/proc/${String(pid)}/fd`).length;

function open(server: HttpServer): Socket {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname).on("error", () => undefined);
  return socket.on("connect", () => socket.write("POST /mcp HTTP/1.1\r\nHost: "));
}

/**
 * At this rate 28 new connections, as many as may stay open without a token from an address at 256 descriptors, arrive in 150
 * ms. A client's own connection is closed only if its request stays unread for as long.
 */
const RECONNECT_MS = 2_000;

/** Keeps 400 unfinished requests open and reconnects after each cut-off. Returns the function that stops the attack. */
function attack(server: HttpServer): () => void {
  const sockets = new Set<Socket>();
  let isOver = false;
  const add = () => {
    const socket = open(server);
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      if (!isOver) setTimeout(add, RECONNECT_MS);
    });
  };
  for (let index = 0; index < 400; index += 1) add();
  return () => {
    isOver = true;
    for (const socket of sockets) socket.destroy();
  };
}

/**
 * Lifetime of a connection without a token (`lasted`, ms) and a longer call with a token (`answering`), both during other
 * tests.
 */
let plain: HttpServer;
let plainClient: HttpConnection;
let lasted: Promise<number>;
let answering: Promise<unknown>;
beforeAll(async () => {
  plain = await world.http();
  plainClient = await plain.connect();
  const socket = open(plain);
  const began = performance.now();
  lasted = once(socket, "close").then(() => performance.now() - began);
  const prompt = scriptTag([{ text: "Later.", delayMs: 11_000 }]);
  answering = plainClient.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
});

describe("400 slow connections without a token, at 256 file descriptors", () => {
  let server: HttpServer;
  let stop: () => void;
  beforeAll(async () => {
    server = await world.http({ through: FEW_DESCRIPTORS });
    stop = attack(server);
    await server.logged("connections are cut off");
  });
  afterAll(() => stop());

  const prompt = scriptTag([{ text: "All the same." }]);

  it("400 slow connections without a token leave sessions over HTTP undisturbed", async () => {
    const client = await server.connect();
    const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    expect(answer).toMatchObject({ status: "idle", result: { result: "All the same.", isError: false } });
    expect(descriptors(server)).toBeLessThan(200);
    await client.close();
  });
});

describe("connection limits of a server over HTTP", () => {
  it("a connection without a token is cut off after 10 s, and a connection with a token is kept", async () => {
    expect(await lasted).toBeGreaterThan(9_000);
    expect(await answering).toMatchObject({ status: "idle", result: { result: "Later." } });
  });

  it("a server without a free file descriptor starts no Claude Code, and says why", async () => {
    const prompt = scriptTag([{ text: "once" }]);
    const cwd = world.folder();
    await plainClient.call("claude_code", { prompt, cwd, waitMs: 40_000 });
    const most = descriptors(plain) + 2;
    execFileSync("bash", ["-c", `prlimit --pid ${String(plain.pid)} --nofile=${String(most)}:${String(most)}`]);
    const failed = await plainClient.call("claude_code", { prompt, cwd, waitMs: 40_000 });
    expect(failed).toMatchObject({ status: "error", result: { errorSubtype: "start_failed" } });
    expect(failed.result?.result).toContain("no file descriptor left");
    expect(failed.result?.result).toContain(`it may have ${String(most)}`);
  });
});
