import { Client } from "@modelcontextprotocol/client";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { CLIENT_KINDS, type ClientKind, type Connection } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Followers of a session are notified of changes, whichever server runs the session; other users are notified of nothing. */

const ALL = { scopes: ["read", "run", "approve"] };
const { args: PRINCIPALS, tokens } = namedUsers({ ada: ALL, bob: ALL });

const world = useWorld({ agent: "stand-in", daemon: "auto" });
let http: HttpServer;
let owner: Connection;
beforeAll(async () => {
  http = await world.http({ args: PRINCIPALS });
  owner = await http.connect();
});

interface Updates {
  /** URIs in the order of their notifications. */
  readonly heard: string[];
  end(): Promise<void>;
}

const isModern = (kind: ClientKind) => kind === "modern";

/** Subscribes to `uris` as the client's era does. */
async function follow({ client }: Connection, kind: ClientKind, uris: string[]): Promise<Updates> {
  const heard: string[] = [];
  const hear = ({ params }: { params: { uri: string } }) => void heard.push(params.uri);
  if (!(client instanceof Client)) {
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, hear);
    for (const uri of uris) await client.subscribeResource({ uri });
    const unsubscribe = uris.map((uri) => async () => client.unsubscribeResource({ uri }));
    return { heard, end: async () => void (await Promise.all(unsubscribe.map(async (each) => each()))) };
  }
  client.setNotificationHandler("notifications/resources/updated", hear);
  if (isModern(kind)) {
    const listening = await client.listen({ resourceSubscriptions: uris });
    return { heard, end: async () => listening.close() };
  }
  for (const uri of uris) await client.subscribeResource({ uri });
  const unsubscribe = uris.map((uri) => async () => client.unsubscribeResource({ uri }));
  return { heard, end: async () => void (await Promise.all(unsubscribe.map(async (each) => each()))) };
}

async function startIdle(connection: Connection): Promise<string> {
  const prompt = scriptTag([{ text: "Begun." }]);
  const { sessionId } = await connection.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
  return sessionId;
}

async function runTurn(connection: Connection, sessionId: string): Promise<number> {
  const prompt = scriptTag([{ text: "Done." }]);
  const { nextCursor } = await connection.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
  return nextCursor - 1;
}

/** Returns a function that reads the session. `isLast` is true if no notification came during the read. */
function sessionReader({ client }: Connection, sessionId: string, { heard }: Updates) {
  return async () => {
    const before = heard.length;
    const { contents } = await client.readResource({ uri: `claude-code://sessions/${sessionId}` });
    const [content] = contents;
    const text = content && "text" in content ? content.text : "";
    const { lastEventId } = JSON.parse(text) as { lastEventId: number };
    return { lastEventId, isLast: heard.length === before };
  };
}

/** Grant or error of a subscription, without the session id. */
async function subscriptionAnswer({ client }: Connection, kind: ClientKind, uri: string): Promise<string> {
  const without = (text: string) => text.replaceAll(/[\da-f]{8}-[\da-f-]{27}(\/events)?/g, "ID");
  if (client instanceof Client && isModern(kind)) {
    const { honoredFilter } = await client.listen({ resourceSubscriptions: [uri] });
    return `granted: ${JSON.stringify(honoredFilter.resourceSubscriptions ?? [])}`;
  }
  const refused: unknown = await client.subscribeResource({ uri }).then(
    () => "it is followed",
    (error: unknown) => error,
  );
  return without(
    JSON.stringify(
      refused,
      Object.getOwnPropertyNames(refused).filter((name) => name !== "stack"),
    ),
  );
}

describe.each(CLIENT_KINDS)("following a session, with the %s client", (kind) => {
  let onStdio: Connection;
  beforeAll(async () => {
    onStdio = await world.server({ client: kind });
  });
  afterAll(async () => onStdio.close());

  const places = [
    ["stdio", () => onStdio],
    ["HTTP", async () => http.connect(kind, tokens.ada)],
  ] as const;
  it.each(places)(
    "over %s, a follower is notified of a turn to its end, and of nothing after the end of its subscription",
    async (_, connect) => {
      const connection = await connect();
      const sessionId = await startIdle(connection);
      const [session, events] = [`claude-code://sessions/${sessionId}`, `claude-code://sessions/${sessionId}/events`];
      const updates = await follow(connection, kind, [session, events]);
      const end = await runTurn(connection, sessionId);
      const read = sessionReader(connection, sessionId, updates);
      await vi.waitFor(() => expect(new Set(updates.heard)).toEqual(new Set([session, events])), { timeout: 10_000 });
      // A client that reads only at notifications reaches the end of the turn.
      let told = 0;
      await vi.waitFor(
        async () => {
          expect(updates.heard.length).toBeGreaterThan(told);
          told = updates.heard.length;
          expect((await read()).lastEventId).toBeGreaterThanOrEqual(end);
        },
        { timeout: 10_000 },
      );
      await updates.end();
      const heard = updates.heard.length;
      await runTurn(connection, sessionId);
      expect(updates.heard).toHaveLength(heard);
      if (connection !== onStdio) await connection.close();
    },
  );

  it("a follower is notified of a session that another server on the store runs", async () => {
    const sessionId = await startIdle(owner);
    const uri = `claude-code://sessions/${sessionId}/events`;
    const updates = await follow(onStdio, kind, [uri]);
    await runTurn(owner, sessionId);
    await vi.waitFor(() => expect(updates.heard).toContain(uri), { timeout: 10_000 });
    await updates.end();
  });

  it("a follower learns nothing of a session of another user", async () => {
    const [ada, bob] = [await http.connect("modern", tokens.ada), await http.connect(kind, tokens.bob)];
    const foreign = await startIdle(ada);
    const own = await startIdle(bob);
    const uris = [`claude-code://sessions/${foreign}`, `claude-code://sessions/${foreign}/events`];
    const nowhere = "claude-code://sessions/00000000-0000-4000-8000-000000000000";
    // Another user's session is indistinguishable from a missing one.
    const [first, ...others] = await Promise.all(
      [...uris, nowhere].map(async (uri) => subscriptionAnswer(bob, kind, uri)),
    );
    expect(first).toContain(isModern(kind) ? "granted: []" : "SESSION_NOT_FOUND");
    expect(others).toEqual([first, first]);
    const mine = `claude-code://sessions/${own}`;
    const updates = await follow(bob, kind, isModern(kind) ? [...uris, nowhere, mine] : [mine]);
    await runTurn(ada, foreign);
    await runTurn(bob, own);
    await vi.waitFor(() => expect(updates.heard).toContain(mine), { timeout: 10_000 });
    expect(new Set(updates.heard)).toEqual(new Set([mine]));
    await Promise.all([ada.close(), bob.close()]);
  });
});
