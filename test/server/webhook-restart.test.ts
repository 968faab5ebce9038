import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Connection } from "../kit/clients/connection.ts";
import {
  type Delivery,
  ofType,
  startReceiver,
  WITH_SECRET,
  type ReceiverServer,
} from "../kit/clients/webhook-receiver.ts";
import { constants } from "../kit/servers/constants.ts";
import { post } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Tests that messages to the operator's webhook outlive the server that owes them. */

const world = useWorld({ agent: "stand-in" });
let receiver: ReceiverServer;
afterEach(async () => {
  await world.closeServers();
  await receiver.close();
});

const SOON = constants({ notifyRetryMs: 200 });

/** Starts a server on `store` that notifies the webhook. */
async function start(store: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const told = ["--notify-url", receiver.url, "--store", store, ...args];
  const http = await world.http({ args: told, env: { ...WITH_SECRET, ...SOON, ...env } });
  return { http, client: await http.connect() };
}

/** Runs a turn to its end. */
async function runTurn(client: Connection, options: object = {}): Promise<string> {
  const given = { prompt: scriptTag([{ text: "Done." }]), cwd: world.folder(), waitMs: 40_000, ...options };
  const { result, sessionId } = await client.call("claude_code", given);
  expect(result).toMatchObject({ result: "Done." });
  return sessionId;
}

const idOf = ({ headers }: Delivery) => headers["webhook-id"];
const portOf = ({ url }: ReceiverServer) => Number(new URL(url).port);
const storeOf = () => join(world.folder(), "store.db");

describe("messages that a server leaves", () => {
  it("the next server delivers a message of a killed server once, under the same id", async () => {
    let status = 500;
    receiver = await startReceiver(({ response }) => void response.writeHead(status).end());
    const store = storeOf();
    const { client, http } = await start(store);
    const sessionId = await runTurn(client);
    const refused = await receiver.next(ofType("turn.ended"));
    // Waits until the result is stored, because the hold of a killed server ends only after its longest attempts.
    await http.logged("status 500");
    http.signal("SIGKILL");
    await http.exited;
    status = 200;
    const before = receiver.got.length;
    const second = await start(store);
    await second.http.logged('"outcome":"delivered"');
    await second.http.close();
    const third = await start(store);
    await runTurn(third.client);
    await third.http.logged('"outcome":"delivered"');
    const [sent, ...others] = receiver.got.slice(before);
    expect(sent).toMatchObject({ payload: { type: "turn.ended", session: { id: sessionId } } });
    expect([idOf(refused), idOf(sent!)]).toEqual([sent?.payload.id, sent?.payload.id]);
    expect(others.map(({ payload }) => payload.session?.id)).not.toContain(sessionId);
  });

  it("a message waits for a receiver that is down while the server restarts", async () => {
    receiver = await startReceiver();
    const port = portOf(receiver);
    const store = storeOf();
    const first = await start(store);
    await receiver.close();
    const sessionId = await runTurn(first.client);
    await first.http.logged("ECONNREFUSED");
    await first.http.close();
    const second = await start(store);
    await second.http.logged("ECONNREFUSED");
    receiver = await startReceiver(undefined, port);
    const { payload } = await receiver.next();
    expect(payload).toMatchObject({ type: "turn.ended", session: { id: sessionId }, turn: { outcome: "done" } });
    expect(payload.id).toMatch(new RegExp(`^msg_${sessionId}_\\d+$`));
  });

  it("a request is offered again under the same id after its server was killed, and can be answered", async () => {
    receiver = await startReceiver();
    const [store, cwd] = [storeOf(), world.folder()];
    const file = join(cwd, "made.txt");
    const args = ["--approvals", "webhook,caller"];
    const first = await start(store, args, constants({ notifyRetryMs: 200, shim: true }));
    const tools = [{ name: "Write", input: { file_path: file, content: "made" } }];
    await first.client.call("claude_code", { prompt: scriptTag([{ tools }, { text: "Done." }]), cwd });
    const asked = await receiver.next(ofType("permission.asked"));
    await first.http.logged('"outcome":"delivered"');
    first.http.signal("SIGKILL");
    await first.http.exited;
    const second = await start(store, args, constants({ notifyRetryMs: 200, shim: true }));
    const again = await receiver.next(ofType("permission.asked"));
    expect(idOf(again)).toBe(idOf(asked));
    const headers = { authorization: `Bearer ${second.http.token}` };
    expect((await fetch(again.payload.answerUrl, post({ decision: "allow" }, headers))).status).toBe(200);
    expect((await receiver.next(ofType("turn.ended"))).payload.turn).toMatchObject({ outcome: "done" });
    expect(existsSync(file)).toBe(true);
  });
});

describe("servers of one store", () => {
  it("two servers with one URL deliver each message once, with `persistSession: false` too; a server without it leaves none", async () => {
    receiver = await startReceiver();
    const store = storeOf();
    const without = await world.http({ args: ["--store", store] });
    const [one, two] = [await start(store), await start(store)];
    await runTurn(await without.connect());
    const unsaved = runTurn(one.client, { advanced: { persistSession: false } });
    const sessions = await Promise.all([unsaved, ...[one, two, two].map(async ({ client }) => runTurn(client))]);
    for (const _ of sessions) await receiver.next();
    await Promise.all([one.http.close(), two.http.close()]);
    expect(receiver.got).toHaveLength(sessions.length);
    expect(new Set(receiver.got.map(({ payload }) => payload.session?.id))).toEqual(new Set(sessions));
  });
});
