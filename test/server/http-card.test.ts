import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/client";
import { expect, it } from "vitest";
import { z } from "zod";

import { useWorld } from "../kit/world.ts";

/** The server card (SEP-2127). */

/**
 * Schema `server-card.schema.json` of the extension, v1, in zod: fields, bounds and patterns as in
 * https://github.com/modelcontextprotocol/ext-server-card/blob/main/schema.json. Stricter than the original: refuses unknown
 * fields, and requires `remotes`.
 */
const inputFields = {
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  format: z.enum(["boolean", "filepath", "number", "string"]).optional(),
  value: z.string().optional(),
  default: z.string().optional(),
  placeholder: z.string().optional(),
  choices: z.array(z.string()).optional(),
};
const Header = z.strictObject({
  name: z.string(),
  variables: z.record(z.string(), z.strictObject(inputFields)).optional(),
  ...inputFields,
});
const Remote = z.strictObject({
  type: z.enum(["sse", "streamable-http"]),
  url: z.string().regex(/^(?:https?:\/\/\S+|\{[a-zA-Z_]\w*\}\S*)$/),
  headers: z.array(Header).optional(),
  supportedProtocolVersions: z.array(z.string()).optional(),
  variables: z.record(z.string(), z.strictObject(inputFields)).optional(),
});
const ServerCard = z.strictObject({
  $schema: z.literal("https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  description: z.string().min(1).max(100),
  version: z.string().max(255),
  title: z.string().min(1).max(100).optional(),
  websiteUrl: z.url().optional(),
  remotes: z.array(Remote).length(1),
});

const PATHS = ["/mcp/server-card", "/.well-known/mcp/server-card.json"];

const world = useWorld({ agent: "stand-in" });

/** Returns the card that a server with `args` gives without a token, and its headers. */
async function cardOf(args: readonly string[], headers: Record<string, string> = {}) {
  const server = await world.http({ args: [...args] });
  const answers = await Promise.all(PATHS.map(async (path) => fetch(server.origin + path, { headers })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  const [text = "", again] = await Promise.all(answers.map(async (answer) => answer.text()));
  expect(again).toBe(text);
  return { server, text, card: ServerCard.parse(JSON.parse(text)), headers: answers[0]?.headers };
}

it("the server card fits its schema, tells what a client finds, and holds no secret", async () => {
  const { card, headers, server, text } = await cardOf([]);
  expect(Object.fromEntries(headers ?? [])).toMatchObject({
    "content-type": "application/mcp-server-card+json",
    "cache-control": "public, max-age=3600",
  });
  const { description, mcpName, version } = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, string>;
  expect(card).toMatchObject({ name: mcpName, description, version });
  const [remote] = card.remotes;
  expect(remote?.url).toBe(server.url);
  expect(remote?.headers).toMatchObject([
    { name: "Authorization", value: "Bearer {token}", isRequired: true, isSecret: true },
  ]);
  expect(text).not.toContain(server.token);

  const { client } = await server.connect("modern");
  if (!(client instanceof Client)) throw new Error("not the client that was meant");
  expect(client.getServerVersion()?.version).toBe(card.version);
  const offered = remote?.supportedProtocolVersions ?? [];
  expect(offered[0]).toBe(client.getNegotiatedProtocolVersion());
  for (const protocolVersion of offered.slice(1)) {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: "t", version: "1" } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const accept = "application/json, text/event-stream";
    const sent = { method: "POST", body, headers: { accept, "content-type": "application/json" } };
    expect(await (await server.fetch("/mcp", sent)).text()).toContain(`"protocolVersion":"${protocolVersion}"`);
  }
});

it("the server card names `--public-url`, and a token is optional with an authorization server", async () => {
  const issuer = JSON.stringify({ issuer: "https://issuer.example" });
  const { card } = await cardOf(["--public-url", "https://agents.example/", "--oauth", issuer, "--allow-dir", "/"]);
  expect(card.remotes).toMatchObject([{ url: "https://agents.example/mcp", headers: [{ isRequired: false }] }]);
});

it("without authentication the server card asks for no header, and pages of unknown origins cannot read it", async () => {
  const { card, headers, server } = await cardOf(["--no-auth", "--allow-origin", "https://a.example"], {
    origin: "https://a.example",
  });
  expect(card.remotes[0]).not.toHaveProperty("headers");
  expect(headers?.get("access-control-allow-origin")).toBe("https://a.example");
  const refused = await fetch(`${server.origin}${PATHS[0] ?? ""}`, { headers: { origin: "https://b.example" } });
  expect(refused.status).toBe(403);
});
