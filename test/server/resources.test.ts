import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import { LIBRARY } from "../../src/mcp/resources/library.ts";
import { CLIENT_KINDS, type Connection } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
beforeAll(async () => {
  http = await world.http();
});

const Json = z.string().transform((text): unknown => JSON.parse(text));

async function read({ client }: Connection, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  return z.tuple([z.looseObject({ uri: z.literal(uri), text: z.string() })]).parse(contents)[0].text;
}

describe.each(CLIENT_KINDS)("resources, with the %s client", (kind) => {
  it("resources explain the server and describe sessions", async () => {
    const server = await http.connect(kind);
    const { resources } = await server.client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(LIBRARY.pages.map(({ uri }) => uri));
    for (const { uri } of resources)
      expect(await read(server, uri)).toMatch(/^(?:# |---\nname: |\{"profiles":\[\]\}$)/);
    const { resourceTemplates } = await server.client.listResourceTemplates();
    const templates = resourceTemplates.map(({ uriTemplate }) => uriTemplate);
    expect(templates).toEqual(LIBRARY.documents.map(({ uriTemplate }) => uriTemplate));

    const cwd = world.folder();
    const prompt = `Say it. ${scriptTag([{ text: "Here it is." }])}`;
    const { sessionId } = await server.call("claude_code", { prompt, cwd, waitMs: 40_000 });
    const session = await read(server, `claude-code://sessions/${sessionId}`);
    expect(Json.parse(session)).toMatchObject({ sessionId, status: "idle", lastOutcome: "done" });
    expect(session).not.toContain(cwd);
    const told = Json.parse(await read(server, `claude-code://sessions/${sessionId}/events?cursor=1&limit=500`));
    expect(told).toMatchObject({
      sessionId,
      events: expect.arrayContaining([
        expect.objectContaining({ type: "output", data: { text: "Here it is." } }),
      ]) as unknown,
    });

    const unknown = "claude-code://sessions/00000000-0000-4000-8000-000000000000";
    await expect(read(server, unknown)).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining("SESSION_NOT_FOUND") as string,
    });
  });
});
