import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { skillEntry } from "@modelcontextprotocol/server/ext/skills";
import { beforeAll, describe, expect, it } from "vitest";

import type { Connection, ClientKind } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** The skill that teaches delegation: over MCP, as a prompt and in the plugin for Claude Code. */

const PATH = "claude-agents/delegate";
const FOLDER = `skill://${PATH}`;
const IN_PLUGIN = readFileSync("catalogues/plugin/skills/delegate/SKILL.md", "utf8");

const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
beforeAll(async () => {
  http = await world.http();
});

function sdkClient({ client }: Pick<Connection, "client">): Client {
  if (client instanceof Client) return client;
  throw new Error("not the client that was meant");
}

const ways: [string, () => Promise<Connection>][] = [
  ["HTTP", async () => http.connect("modern")],
  ["stdio and a daemon", async () => world.shared()],
];

describe.each(ways)("the skill, over %s", (_, connect) => {
  it("a host lists the skill `delegate`, and verifies digest, size and frontmatter of its file", async () => {
    const connection = await connect();
    const skills = new SkillsClient(sdkClient(connection));
    expect(skills.supported).toBe(true);
    const { skills: listed } = await skills.list();
    // The entry that the MCP SDK makes of the plugin's file.
    const entry = await skillEntry(PATH, { "SKILL.md": IN_PLUGIN });
    expect(listed).toEqual([entry]);
    expect((await skills.get(`${FOLDER}/SKILL.md`)).skill).toEqual(entry);
    const file = await skills.read(entry);
    expect(file).toMatchObject({ verified: true, mimeType: "text/markdown", text: IN_PLUGIN });
    await expect(skills.get(`${FOLDER}/OTHER.md`)).rejects.toMatchObject({ code: -32_602 });
    await connection.close();
  });
});

describe.each<ClientKind>(["modern", "legacy"])("the skill, with the %s client", (kind) => {
  it("skill, prompt and the plugin's file have one text, of at most 3,072 bytes", async () => {
    const connection = await http.connect(kind);
    const { client } = connection;
    const { contents } = await client.readResource({ uri: FOLDER });
    expect(contents).toEqual([{ uri: `${FOLDER}/SKILL.md`, mimeType: "text/markdown", text: IN_PLUGIN }]);
    expect(Buffer.byteLength(IN_PLUGIN)).toBeLessThanOrEqual(3_072);
    const { messages } = await client.getPrompt({ name: "delegate", arguments: { task: "Fix it" } });
    const body = IN_PLUGIN.slice(IN_PLUGIN.indexOf("# Delegate"));
    expect(JSON.stringify(messages)).toContain(JSON.stringify(body).slice(1, -1));
    await connection.close();
  });
});

it("the extension is not declared to clients of 2025, for whose protocol it is not written", async () => {
  const connection = await http.connect("legacy");
  const skills = new SkillsClient(sdkClient(connection));
  expect(skills.supported).toBe(false);
  await connection.close();
});
