import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { frames, INITIALIZE, post, type HttpServer } from "../servers/http-server.ts";
import type { World } from "../world.ts";
import { ENVELOPE_SEED, envelopes, OF_MODERN, type Envelope, type Era } from "./envelopes.ts";
import { at } from "./send.ts";

/** Sends random envelopes and expects one answer to each. */

/** Defines the tests for both eras and all transports; `stdio` and `http`: number of requests for each test. */
export function testAnswers(world: World, { http, stdio }: { readonly http: number; readonly stdio: number }): void {
  const about = (count: number) =>
    `${String(count)} requests that are changed at random (seed ${String(ENVELOPE_SEED)}) are answered once each`;
  const eras = it.each<Era>(["legacy", "modern"]);
  eras(`${about(stdio)}: over stdio, by a server of their own: %s`, async (era) => {
    const env = { ...world.environment, CLAUDE_CODE_MCP_DAEMON: "off" };
    await expectAnswersOverStdio({ args: ["--store", "memory:"], env }, era, stdio);
  });
  eras(`${about(stdio)}: over stdio, by a daemon: %s`, async (era) => {
    await expectAnswersOverStdio({ args: [], env: world.environment }, era, stdio);
    expect(world.daemons()).toHaveLength(1);
  });
  eras(`${about(http)}: over HTTP: %s`, async (era) => {
    const server = await world.http({ args: ["--rate-limit", "1000000"] });
    await expectAnswersOverHttp(server, era, http);
  });
}

const OPENING = "opening";
const opening = (era: Era): object =>
  era === "modern"
    ? { jsonrpc: "2.0", id: OPENING, method: "tools/list", params: { _meta: OF_MODERN } }
    : { ...INITIALIZE, id: OPENING };

/**
 * Sends `count` requests to the built server over stdio and expects one answer to each; the server then ends with exit code 0.
 */
async function expectAnswersOverStdio(
  { args, env }: { args: readonly string[]; env: Readonly<Record<string, string>> },
  era: Era,
  count: number,
): Promise<void> {
  const sent = envelopes(era, count);
  const child = spawn(process.execPath, ["dist/cli/main.js", "serve", ...args], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const exited = once(child, "exit");
  const seen = new Map<string, number>();
  const heard = (id: unknown) => seen.get(JSON.stringify(id)) ?? 0;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id } = JSON.parse(line) as { id?: unknown };
    if (id !== undefined) seen.set(JSON.stringify(id), heard(id) + 1);
  });
  for (const text of [JSON.stringify(opening(era)), ...sent.map((each) => each.text)]) {
    if (!child.stdin.write(`${text}\n`)) await once(child.stdin, "drain");
  }
  const missing = () => sent.filter(({ id }) => heard(id) === 0).map(({ text }) => text.slice(0, 500));
  try {
    await expect.poll(missing, { timeout: 20_000 }).toEqual([]);
  } finally {
    child.stdin.end();
  }
  expect(await exited).toEqual([0, null]);
  expect(sent.filter(({ id }) => heard(id) !== 1)).toEqual([]);
  // The opening message has an answer, too.
  expect(seen.size).toBe(count + 1);
}

const LANES = 16;

/** Sends `count` requests over HTTP. Expects one answer to each, or a 4xx refusal of the HTTP request. */
async function expectAnswersOverHttp(server: HttpServer, era: Era, count: number): Promise<void> {
  const headers = era === "legacy" ? await legacyHeaders(server) : undefined;
  const left = envelopes(era, count);
  const wrong: unknown[] = [];
  const lane = async () => {
    for (let next = left.pop(); next; next = left.pop()) {
      const response = await server.fetch("/mcp", post(next.text, headers ?? modernHeaders(next)));
      const answers = await answersIn(response);
      if (!isAnswer(next, response.status, answers)) wrong.push({ next, status: response.status, answers });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  expect(wrong).toEqual([]);
}

async function legacyHeaders(server: HttpServer): Promise<Record<string, string>> {
  const response = await server.fetch("/mcp", post(INITIALIZE));
  await response.text();
  return { "mcp-session-id": response.headers.get("mcp-session-id") ?? "", "mcp-protocol-version": "2025-11-25" };
}

function modernHeaders({ text }: Envelope): Record<string, string> {
  const { method, params } = JSON.parse(text.trim()) as { method?: unknown; params?: unknown };
  const name = at(params, "name") ?? at(params, "uri");
  const encoded = (value: unknown) => `=?base64?${Buffer.from(String(value)).toString("base64")}?=`;
  return {
    "mcp-protocol-version": "2026-07-28",
    ...(typeof method === "string" && { "mcp-method": /^[\w/]+$/.test(method) ? method : encoded(method) }),
    ...(typeof name === "string" && { "mcp-name": /^[\w:/-]+$/.test(name) ? name : encoded(name) }),
  };
}

async function answersIn(response: Response): Promise<unknown[]> {
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) return [await response.json()];
  const messages: unknown[] = [];
  for await (const { message } of frames(response)) if (message?.id !== undefined) messages.push(message);
  return messages;
}

function isAnswer({ id }: Envelope, status: number, answers: readonly unknown[]): boolean {
  const [answer, ...others] = answers;
  if (others.length > 0 || typeof answer !== "object" || answer === null) return false;
  if (at(answer, "id") === id) return true;
  // A 4xx status is a refusal, not a fault of the server.
  return status >= 400 && status < 500 && at(answer, "error") !== undefined;
}
