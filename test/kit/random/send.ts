import { Agent, request, type IncomingMessage } from "node:http";
import { once } from "node:events";

import type { Call } from "./calls.ts";
import { spell, spellText, type PlaceholderValues } from "./spell.ts";

/** Sends a call like a program without a library, and reads the whole answer. */

export interface Sent {
  readonly body: string;
  /** Body as JSON; `undefined` for invalid JSON. */
  readonly json: unknown;
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

export interface Target {
  readonly url: string;
  readonly token: string;
  readonly place: PlaceholderValues;
}

/** Longer than any call here takes unless the server hangs, ms. */
const HANG_MS = 30_000;

export class CallSender {
  readonly #agent: Agent;

  constructor(lanes: number) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: lanes });
  }

  /** Rejects if there is no answer, or no end of the answer, within `HANG_MS`. */
  async send(call: Call, { place, token, url }: Target, id: number): Promise<{ sent: Sent; answer: Answer }> {
    const here = { ...place, id: String(id) };
    const body = "json" in call.body ? spellId(spell(call.body.json, here), id) : spellText(call.body.text, here);
    const sent = { body, json: parsed(body) };
    const headers = headersOf(call, sent.json, { token, place: here });
    const options = { agent: this.#agent, method: call.verb, headers, signal: AbortSignal.timeout(HANG_MS) };
    const hasBody = !["GET", "HEAD", "OPTIONS"].includes(call.verb);
    for (;;) {
      const asked = request(url, options);
      asked.end(hasBody ? body : undefined);
      try {
        const [incoming] = (await once(asked, "response")) as [IncomingMessage];
        return { sent, answer: await readAnswer(incoming, call.verb) };
      } catch (error) {
        // The server may just have closed the kept-alive connection.
        if (asked.reusedSocket && error instanceof Error && "code" in error && error.code === "ECONNRESET") continue;
        throw error;
      }
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Replaces ids by numbers. */
const spellId = (text: string, id: number): string => text.replaceAll(`"${String(id)}"`, String(id));

async function readAnswer(incoming: IncomingMessage, verb: string): Promise<Answer> {
  const { headers, statusCode: status = 0 } = incoming;
  const type = headers["content-type"] ?? "";
  // A GET stream does not end.
  if (verb === "GET" && type.startsWith("text/event-stream")) {
    incoming.destroy();
    return { status, type: "", text: "" };
  }
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) text += String(chunk);
  return { status, type, text };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function headersOf(call: Call, json: unknown, { place, token }: Pick<Target, "place" | "token">) {
  const usual: Record<string, string | undefined> = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...(call.era === "modern" ? modernHeaders(json) : legacyHeaders(json, place)),
  };
  const all = Object.entries({ ...usual, ...call.headers });
  return Object.fromEntries(
    all.flatMap(([name, value]) => (value === undefined ? [] : [[name, spellText(value, place)]])),
  );
}

function legacyHeaders(json: unknown, place: PlaceholderValues): Record<string, string> {
  if (at(json, "method") === "initialize") return {};
  return { "mcp-session-id": place["session"] ?? "", "mcp-protocol-version": "2025-11-25" };
}

/** Headers of the 2026 era repeat the method and the name of the request. */
function modernHeaders(json: unknown): Record<string, string | undefined> {
  const params = at(json, "params");
  const [method, name] = [at(json, "method"), at(params, "name") ?? at(params, "uri")];
  return {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": typeof method === "string" ? headerOf(method) : undefined,
    "mcp-name": typeof name === "string" ? headerOf(name) : undefined,
  };
}

/** Text that no header can hold is sent in base64; long text is cut to 2,000 characters. */
function headerOf(text: string): string {
  const short = text.slice(0, 2_000);
  const isPlain = /^[\u0021-\u007E]+$/.test(short) && !short.startsWith("=?");
  return isPlain ? short : `=?base64?${Buffer.from(short).toString("base64")}?=`;
}

export function at(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
