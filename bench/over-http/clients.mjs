/**
 * Clients of a server over HTTP, in both eras, with a library and without. Each calls tools and can disconnect abruptly. A call
 * ends with an answer, with `Refused`, or with any other error.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as V1Transport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { ownConnections } from "./own-connections.mjs";

/** Rejection by an overloaded or stopping server (429, 503). The client retries after `afterMs`. */
export class Refused extends Error {
  constructor(status, seconds) {
    super(`refused with ${String(status)}`);
    this.status = status;
    this.afterMs = seconds * 1000;
  }
}

/**
 * Rejection by a server that does not know the protocol session (404), after a restart or because the server dropped the
 * session.
 */
export class Unknown extends Error {}

const INFO = { name: "load", version: "1" };
/** Time limit of a call, ms. Longer than any requested wait. */
const PATIENCE_MS = 300_000;
const MODERN = "2026-07-28";
const LEGACY = "2025-11-25";

/** Kinds of client, assigned in turn. */
export const KINDS = ["raw modern", "raw legacy", "v2 modern", "raw modern", "raw legacy", "v2 legacy", "v1"];

/**
 * Connects a client to `door` ({ url, token }). `call(tool, args)` resolves to the structured content, and rejects with
 * `Refused`, `Unknown` or another error; `vanish()` drops all open connections; `close()` ends the protocol session.
 * `readLate()` returns the delay in ms before a raw client reads an answer; after `patienceMs` a library gives up a call.
 */
export async function connect(kind, door, { patienceMs = PATIENCE_MS, readLate = () => 0 } = {}) {
  if (kind === "raw modern") return rawModern(door, readLate);
  if (kind === "raw legacy") return rawLegacy(door, readLate);
  return viaLibrary(kind, door, patienceMs);
}

function rawModern({ token, url }, readLate) {
  const { fetch, vanish } = ownConnections();
  const meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  let count = 0;
  return {
    async call(name, args) {
      const id = (count += 1);
      const params = { name, arguments: args, _meta: meta };
      const headers = { "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": name };
      const message = { jsonrpc: "2.0", id, method: "tools/call", params };
      const response = await taken(fetch(url, post(message, { ...bearer(token), ...headers })));
      return contentOf(name, await messageOf(response, id, readLate));
    },
    vanish,
    close: () => Promise.resolve(vanish()),
  };
}

/** Opens the GET stream of a legacy client, on which the server need not send anything. */
async function rawLegacy({ token, url }, readLate) {
  const { fetch, vanish } = ownConnections();
  const begin = { protocolVersion: LEGACY, capabilities: {}, clientInfo: INFO };
  const initialize = { jsonrpc: "2.0", id: 0, method: "initialize", params: begin };
  const begun = await taken(fetch(url, post(initialize, bearer(token))));
  await begun.text();
  const session = { "mcp-session-id": begun.headers.get("mcp-session-id"), "mcp-protocol-version": LEGACY };
  const headers = { ...bearer(token), ...session };
  const ready = post({ jsonrpc: "2.0", method: "notifications/initialized" }, headers);
  await (await taken(fetch(url, ready))).text();
  const stream = await taken(fetch(url, { headers: { ...headers, accept: "text/event-stream" } }));
  // The stream ends with the client or with the server: the next call shows which.
  stream.text().catch(() => undefined);
  let count = 0;
  return {
    async call(name, args) {
      const id = (count += 1);
      const message = { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } };
      const response = await taken(fetch(url, post(message, headers)));
      return contentOf(name, await messageOf(response, id, readLate));
    },
    vanish,
    async close() {
      await (await taken(fetch(url, { method: "DELETE", headers }))).text();
      vanish();
    },
  };
}

async function viaLibrary(kind, { token, url }, timeout) {
  const { fetch, gone, vanish } = ownConnections();
  // Keeps the failed response in `told`, because some libraries drop the response from their errors.
  let told;
  const options = {
    requestInit: { headers: bearer(token) },
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (init?.method === "POST" && !response.ok) told = failureOf(response);
      return response;
    },
  };
  const [client, transport] = libraryOf(kind, new URL(url), options);
  const failed = (error) => {
    throw told ?? error;
  };
  await client.connect(transport).catch(failed);
  return {
    async call(name, args) {
      told = undefined;
      const request = { name, arguments: args };
      // Passes `gone`, because after a broken stream a library keeps waiting for the answer, to resume the stream.
      const settings = { timeout, signal: gone };
      const calling =
        kind === "v1" ? client.callTool(request, undefined, settings) : client.callTool(request, settings);
      return contentOf(name, { result: await calling.catch(failed) });
    },
    vanish,
    async close() {
      await transport.terminateSession().catch(failed);
      await client.close();
      vanish();
    },
  };
}

function libraryOf(kind, url, options) {
  if (kind === "v1") return [new V1Client(INFO), new V1Transport(url, options)];
  const negotiation = kind === "v2 modern" ? { versionNegotiation: { mode: "auto" } } : {};
  return [new Client(INFO, negotiation), new StreamableHTTPClientTransport(url, options)];
}

function bearer(token) {
  return { authorization: `Bearer ${token}` };
}

function post(message, headers) {
  const accepts = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return { method: "POST", headers: { ...accepts, ...headers }, body: JSON.stringify(message) };
}

async function taken(answer) {
  const response = await answer;
  if (response.ok) return response;
  const failure = failureOf(response);
  failure.message += `: ${(await response.text()).slice(0, 300)}`;
  throw failure;
}

function failureOf({ headers, status }) {
  if (status === 429 || status === 503) return new Refused(status, Number(headers.get("retry-after") ?? 1));
  return status === 404 ? new Unknown("answered with 404") : new Error(`answered with ${String(status)}`);
}

/** Returns the message with this id, from a JSON response or from the end of a stream. */
async function messageOf(response, id, readLate) {
  const late = readLate();
  if (late > 0) await new Promise((resolve) => setTimeout(resolve, late));
  const text = await response.text();
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return JSON.parse(text);
  const messages = text.split("\n").flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []));
  const message = messages.find((each) => each.id === id);
  if (!message) throw new Error(`the stream ended without an answer: ${text.slice(0, 300)}`);
  return message;
}

function contentOf(name, { error, result }) {
  if (error || result.isError) throw new Error(`${name}: ${JSON.stringify(error ?? result.content).slice(0, 500)}`);
  return result.structuredContent;
}
