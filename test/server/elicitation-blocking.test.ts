import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { askingMode, blockingForms, DIRECT, expectAllReported, QUERY, SHOWN } from "../kit/people/blocking-forms.ts";
import { toolCalls, decisions, fillForm, FakeUser, writeCall } from "../kit/people/fake-user.ts";
import { readWholeLog } from "../kit/sessions/one-turn.ts";
import { stream, type Log } from "../kit/clients/streaming.ts";
import { startReceiver, WITH_SECRET, type Delivery } from "../kit/clients/webhook-receiver.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });

// `test/matrices` has each tool with the remaining kinds of clients, on separate servers.
const desk = blockingForms(world, SHOWN);

describe("a form in a call that blocks", () => {
  it("a form that a client of 2026-07-28 never answers is denied by timeout, and its turn ends", async () => {
    const fakeUser = new FakeUser();
    const server = await world.server({
      args: ["--toolsets", "query", "--approvals", "user:1500"],
      person: fakeUser.person,
    });
    let opened = () => undefined as void;
    const isOpen = new Promise<void>((resolve) => (opened = resolve));
    fakeUser.does = async () => {
      opened();
      return new Promise(() => undefined);
    };
    let sessionId = "";
    const onLog = ({ data }: Log) => ({ sessionId } = JSON.parse(String(data)) as { sessionId: string });
    const cwd = world.folder();
    const args = { prompt: toolCalls([writeCall(join(cwd, "a"))]), cwd, ...askingMode(QUERY) };
    void stream(server, QUERY, args, { onLog }).catch(() => undefined);
    await isOpen;
    const { watcher } = desk();
    expect(await watcher.end(sessionId)).toMatchObject({ status: "idle", result: { result: "Over." } });
    expect(decisions(await readWholeLog(watcher, sessionId))).toEqual([["deny", "timeout"]]);
  });

  it("a blocking call shows seven forms at most; later requests are denied where only the person could answer", async () => {
    const fakeUser = new FakeUser();
    fakeUser.does = fillForm({ decision: "allow" });
    const server = await desk().closed(fakeUser);
    const cwd = world.folder();
    const files = Array.from({ length: 8 }, (_, index) => join(cwd, String(index)));
    const answer = await stream(server, QUERY, { prompt: toolCalls(files.map(writeCall)), cwd, ...askingMode(QUERY) });
    expect(answer.data).toMatchObject({ status: "done" });
    expectAllReported(QUERY, answer);
    expect(fakeUser.seen).toHaveLength(7);
    expect(files.map((file) => existsSync(file))).toEqual([...Array.from({ length: 7 }, () => true), false]);
  });
});

describe("a request to the webhook", () => {
  it.each([
    ["query", "webhook", QUERY],
    ["query", "user,webhook", QUERY],
    ["all", "webhook,caller", DIRECT],
  ])("a call waits for the webhook's answer, toolsets %s, --approvals %s: %s", async (toolsets, approvals, tool) => {
    const users = { token: "" };
    const answer = ({ payload, response }: Delivery) => {
      response.end();
      if (payload.type !== "permission.asked") return;
      const headers = { "content-type": "application/json", authorization: `Bearer ${users.token}` };
      void fetch(payload.answerUrl, { method: "POST", headers, body: JSON.stringify({ decision: "allow" }) });
    };
    const receiver = await startReceiver(answer);
    const args = ["--notify-url", receiver.url, "--toolsets", toolsets, "--approvals", approvals];
    const http = await world.http({ args, env: WITH_SECRET });
    users.token = http.token;
    const fakeUser = new FakeUser();
    const client = await http.connect("modern", http.token, fakeUser.person);
    const cwd = world.folder();
    const file = join(cwd, "a");
    const { data } = await stream(client, tool, { prompt: toolCalls([writeCall(file)]), cwd, ...askingMode(tool) });
    expect(data).toMatchObject({ status: "done" });
    expect(existsSync(file)).toBe(true);
    expect(fakeUser.seen).toHaveLength(approvals.startsWith("user") ? 1 : 0);
    await receiver.close();
  });
});
