import { join } from "node:path";
import { expect, it } from "vitest";

import { feedEventId } from "../../src/domain/feed.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { EventsClient } from "../kit/clients/events-client.ts";
import { frames, post } from "../kit/servers/http-server.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** Streams of events outlive their server, and do not keep a server from ending. */

const world = useWorld({ agent: "stand-in" });
const name = "turn.ended";

async function turnEnds(sessionId: string): Promise<string[]> {
  const events = await storedEvents(join(world.configFolder, ".."), sessionId);
  return events.filter(({ type }) => type === name).map(({ id }) => feedEventId(sessionId, id));
}

it.each(["modern", "legacy"] as const)(
  "a stream of a %s client goes on with the next daemon: the events of the death are neither missed nor under a new id",
  async (kind) => {
    const [follower, worker] = [await world.shared({ client: kind }), await world.shared()];
    const client = new EventsClient(follower);
    const stream = await client.stream({ name });
    const first = await worker.call("claude_code", {
      prompt: scriptTag([{ text: "one" }]),
      cwd: world.folder(),
      waitMs: 40_000,
    });
    await stream.until(() => stream.events().length === 1);
    const gated = scriptTag([{ text: "two", gateBefore: kind }]);
    const { sessionId } = await worker.call("claude_code", { prompt: gated, cwd: world.folder() });
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    for (const pid of world.daemons()) process.kill(pid, "SIGKILL");
    // The turn ends without a daemon, or under the next one.
    world.model.release(kind);
    await stream.until(() => stream.events().length >= 2);
    await worker.call("claude_code_reply", { sessionId, prompt: scriptTag([{ text: "three" }]), waitMs: 40_000 });
    await stream.until(() => stream.events().length >= 3);
    const expected = [...(await turnEnds(first.sessionId)), ...(await turnEnds(sessionId))];
    expect(stream.events().map(({ eventId }) => eventId)).toEqual(expected);
    expect(stream.heard.filter((each) => each.kind === "active")).toHaveLength(1);
    expect(
      (await client.poll({ name, cursor: stream.heard[0]!.cursor! })).events.map(({ eventId }) => eventId),
    ).toEqual(expected);
    await Promise.all([follower.close(), worker.close()]);
  },
);

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

it("a server over HTTP that ends sends each stream its empty result", async () => {
  const http = await world.http();
  const params = { name, _meta: META };
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "events/stream", "mcp-name": name };
  const response = await http.fetch(
    "/mcp",
    post({ jsonrpc: "2.0", id: "s", method: "events/stream", params }, headers),
  );
  expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  const seen: unknown[] = [];
  for await (const { message } of frames(response)) {
    seen.push(message);
    if (seen.length === 1) http.signal("SIGTERM");
  }
  expect(seen).toMatchObject([{ method: "notifications/events/active" }, { id: "s", result: { _meta: {} } }]);
  await http.close();
});
