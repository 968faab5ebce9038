import { existsSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, beforeEach, describe, expect, it } from "vitest";

import type { ClientKind, Connection } from "../clients/connection.ts";
import type { Transport } from "./elicitation.ts";
import { toolCalls, decisions, FakeUser, fillForm, writeCall } from "./fake-user.ts";
import type { HttpServer } from "../servers/http-server.ts";
import { readWholeLog } from "../sessions/one-turn.ts";
import { stream, type Log, type Streamed } from "../clients/streaming.ts";
import type { World } from "../world.ts";

/** Tests of a person at a client who answers while a call of the toolsets query and chat waits for its turn. */

export const QUERY = "claude_code_query";
export const DIRECT = "claude_direct_query";
const QUESTION = {
  question: "Which library?",
  header: "Library",
  multiSelect: false,
  options: ["Fast", "Small"].map((label) => ({ label, description: `${label}!` })),
};

const decided = async (watcher: Connection, { data }: Pick<Streamed, "data">) =>
  decisions(await readWholeLog(watcher, String(data["sessionId"])));
/** Options for `tool` to ask for permission, whatever the operator's default is. */
export const askingMode = (tool: string) => (tool === QUERY ? { permissionMode: "default" } : {});

/** Expects each message once in `logs`, and all messages in the answer. */
export function expectAllReported(tool: string, answer: Streamed): void {
  const { answered, told: said } = tool === QUERY ? messagesOf(answer) : toolsOf(answer);
  expect(said).toEqual(answered);
  expect(new Set(answer.logs.map(({ data }) => JSON.stringify(data))).size).toBe(answer.logs.length);
}

function messagesOf({ data, logs }: Streamed) {
  const messages = data["messages"] as object[];
  const said = logs.map((log) => JSON.parse(String(log.data)) as { sequence: number; message: object });
  const answered = messages.map((message, index) => ({ sequence: index + 1, message }));
  return { told: said.map(({ message, sequence }) => ({ sequence, message })), answered };
}

function toolsOf({ data, logs }: Streamed) {
  const invocations = data["toolInvocations"] as { toolUseId: string }[];
  const said = logs.flatMap((log) => (isOutcome(log.data) ? [log.data.toolUseId] : []));
  return { told: said, answered: invocations.map(({ toolUseId }) => toolUseId) };
}

function isOutcome(said: Log["data"]): said is { toolUseId: string; success: boolean } {
  return typeof said === "object" && said !== null && "success" in said;
}

type Row = readonly [tool: string, client: ClientKind, transport: Transport];

export interface Rows {
  readonly forms: readonly Row[];
  /** Rows in which the caller could answer too. */
  readonly caller: readonly Row[];
  readonly chat: readonly (readonly [client: ClientKind, transport: Transport])[];
  readonly cancelled: readonly (readonly [client: "legacy" | "v1", transport: Transport])[];
}

/** Rows for `npm test`: each tool, kind of client and transport occurs. */
export const SHOWN: Rows = {
  forms: [
    [QUERY, "modern", "stdio"],
    [DIRECT, "legacy", "http"],
    [QUERY, "v1", "http"],
  ],
  caller: [
    [DIRECT, "modern", "http"],
    [QUERY, "legacy", "http"],
  ],
  chat: [["v1", "http"]],
  cancelled: [["legacy", "http"]],
};

/** Servers whose callers can answer requests (`open`) and servers whose callers cannot (`closed`); over HTTP, one of each. */
export interface Desk {
  /** Client that polls the sessions of all other clients. */
  readonly watcher: Connection;
  /** Connects a client with a person. */
  open(person: FakeUser, client?: ClientKind, transport?: Transport): Promise<Connection>;
  closed(person: FakeUser, client?: ClientKind, transport?: Transport): Promise<Connection>;
}

const OPEN = ["--toolsets", "all"];
const CLOSED = ["--toolsets", "query,chat", "--approvals", "user:60000,caller"];

async function startDesk(world: World): Promise<Desk> {
  const servers = new Map<string[], HttpServer>([
    [OPEN, await world.http({ args: OPEN })],
    [CLOSED, await world.http({ args: CLOSED })],
  ]);
  const at =
    (args: string[]): Desk["open"] =>
    async ({ person }, client = "modern", transport = "http") => {
      if (transport === "stdio") return world.server({ client, args, person });
      return servers.get(args)!.connect(client, undefined, person);
    };
  return { watcher: await servers.get(OPEN)!.connect(), open: at(OPEN), closed: at(CLOSED) };
}

/** Defines the tests for all `rows`. */
export function blockingForms(world: World, rows: Rows): () => Desk {
  let desk: Desk;
  let watcher: Connection;
  beforeAll(async () => {
    desk = await startDesk(world);
    ({ watcher } = desk);
  });

  describe.each(rows.forms)("%s and a person at a %s client over %s", (tool, kind, transport) => {
    const fakeUser = new FakeUser();
    let server: Connection;
    beforeAll(async () => {
      server = await desk.closed(fakeUser, kind, transport);
    });
    beforeEach(() => void (fakeUser.seen.length = 0));

    it("a person allows, denies and answers a question in one call, which reports each message once and answers with all", async () => {
      const cwd = world.folder();
      const [allowed, refused] = ["a", "b"].map((name) => join(cwd, name)) as [string, string];
      const question = { name: "AskUserQuestion", input: { questions: [QUESTION] } };
      const answers = [{ decision: "allow" }, { decision: "deny" }, { message: "Not there." }, { answer1: "Small" }];
      fakeUser.does = () => ({ action: "accept", content: answers[fakeUser.seen.length - 1]! });
      const prompt = toolCalls([writeCall(allowed), writeCall(refused), question]);
      const answer = await stream(server, tool, { prompt, cwd, ...askingMode(tool) });
      expect(answer.data).toMatchObject({ status: "done" });
      expect([existsSync(allowed), existsSync(refused)]).toEqual([true, false]);
      expect(fakeUser.seen).toHaveLength(4);
      expect(fakeUser.seen[0]?.message).toMatch(/^Write a \(1 line\)/);
      expect(JSON.stringify(answer.logs)).toContain("Not there.");
      expectAllReported(tool, answer);
      expect(await decided(watcher, answer)).toEqual([
        ["allow", "user"],
        ["deny", "user"],
        ["allow", "user"],
      ]);
      const sessions = world.model.requests.filter((request) => request.told.includes(allowed));
      expect(new Set(sessions.map(({ sessionId }) => sessionId))).toEqual(new Set([answer.data["sessionId"]]));
    });

    it("a closed form leaves no approver: the request is denied, and the call continues to its end", async () => {
      const cwd = world.folder();
      const file = join(cwd, "a");
      fakeUser.does = () => ({ action: "cancel" });
      const answer = await stream(server, tool, { prompt: toolCalls([writeCall(file)]), cwd, ...askingMode(tool) });
      expect(answer.data).toMatchObject({ status: "done" });
      expect(JSON.stringify(answer.logs)).toContain("No approver can answer a request here.");
      expectAllReported(tool, answer);
      expect(existsSync(file)).toBe(false);
      expect(fakeUser.seen).toHaveLength(1);
      expect(await decided(watcher, answer)).toEqual([["deny", "rule"]]);
    });
  });

  describe("calls whose caller can answer too", () => {
    it.each(rows.caller)(
      "%s at a %s client over %s returns with the open request once the form is closed",
      async (tool, client, transport) => {
        const fakeUser = new FakeUser();
        const server = await desk.open(fakeUser, client, transport);
        const cwd = world.folder();
        const file = join(cwd, "a");
        const { data } = await stream(server, tool, { prompt: toolCalls([writeCall(file)]), cwd, ...askingMode(tool) });
        expect(data).toMatchObject({ status: "waiting_permission", actions: [{ toolName: "Write" }] });
        expect(fakeUser.seen).toHaveLength(1);
        const { actions, nextCursor: cursor, sessionId } = data as { actions: { requestId: string }[] } & typeof data;
        const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
        const rest = await server.call("claude_code_check", { ...answer, cursor, until: "end", waitMs: 40_000 });
        expect(rest).toMatchObject({ result: { result: "Over." } });
        expect(existsSync(file)).toBe(true);
        expect(await decided(watcher, { data })).toEqual([["allow", "caller"]]);
      },
    );
  });

  describe("forms in blocking calls", () => {
    it.each(rows.chat)("claude_chat_query shows forms in each turn of a session: %s client over %s", async (...way) => {
      const fakeUser = new FakeUser();
      fakeUser.does = fillForm({ decision: "allow" });
      const server = await desk.closed(fakeUser, ...way);
      const cwd = world.folder();
      const files = ["a", "b"].map((name) => join(cwd, name));
      const { data: opened } = await stream(server, "claude_session_create", { cwd });
      const { sessionId } = opened;
      for (const file of files) {
        const answer = await stream(server, "claude_chat_query", { sessionId, prompt: toolCalls([writeCall(file)]) });
        expect(answer.data).toMatchObject({ finalText: "Over.", sessionId });
        expect(answer.logs.filter(({ data }) => data === "Over.")).toHaveLength(1);
        expect(existsSync(file)).toBe(true);
      }
      expect(fakeUser.seen).toHaveLength(2);
    });

    it.each(rows.cancelled)(
      "a cancelled call interrupts the turn, and withdraws its form if the client can: %s client over %s",
      async (kind, transport) => {
        const fakeUser = new FakeUser();
        const server = await desk.closed(fakeUser, kind, transport);
        const cwd = world.folder();
        const controller = new AbortController();
        let takenBack = false;
        fakeUser.does = async (_, signal) => {
          const isTakenBack = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          controller.abort();
          await isTakenBack;
          takenBack = true;
          return { action: "accept", content: { decision: "allow" } };
        };
        let sessionId = "";
        const onLog = ({ data }: Log) => ({ sessionId } = JSON.parse(String(data)) as { sessionId: string });
        const args = { prompt: toolCalls([writeCall(join(cwd, "a"))]), cwd, ...askingMode(QUERY) };
        await expect(stream(server, QUERY, args, { signal: controller.signal, onLog })).rejects.toThrow("abort");
        // A v1 client ignores the cancellation of a request with id 0.
        await expect.poll(() => takenBack).toBe(kind === "legacy");
        expect(await watcher.end(sessionId)).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });
        expect(existsSync(join(cwd, "a"))).toBe(false);
        expect(fakeUser.seen).toHaveLength(1);
      },
    );
  });
  return () => desk;
}
