import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeEach, expect } from "vitest";

import { scriptTag } from "../../../src/demo/model/script.ts";
import { amount } from "../runner/amount.ts";
import { CLIENT_KINDS, type ClientKind, type Connection } from "../clients/connection.ts";
import { toolCalls, decisions, declineAfterReading, FakeUser, fillForm, writeCall } from "./fake-user.ts";
import type { HttpServer } from "../servers/http-server.ts";
import { readWholeLog } from "../sessions/one-turn.ts";
import type { World } from "../world.ts";

/** Tests of forms at clients of each kind over each transport, with scripted people. */

export type Transport = "stdio" | "http";
type Way = readonly [kind: ClientKind, transport: Transport];
type Row = readonly [title: string, ...Way];

interface AtClient {
  readonly world: World;
  readonly kind: ClientKind;
  readonly client: Connection;
  readonly fakeUser: FakeUser;
}

/** Connects one client for each pair of `kind` and `transport`, with a person; HTTP clients share a server. */
export function usePeople(world: World): (...way: Way) => Promise<AtClient> {
  const people = new Map<string, AtClient>();
  let shared: HttpServer | undefined;
  const connect = async (kind: ClientKind, transport: Transport, fakeUser: FakeUser): Promise<Connection> => {
    if (transport === "stdio") return world.server({ client: kind, person: fakeUser.person });
    shared ??= await world.http();
    return shared.connect(kind, shared.token, fakeUser.person);
  };
  beforeEach(() => {
    for (const { fakeUser } of people.values()) fakeUser.seen.length = 0;
  });
  afterAll(async () => {
    for (const { client } of people.values()) await client.close();
  });
  return async (kind, transport) => {
    const way = `${kind} ${transport}`;
    const known = people.get(way);
    if (known) return known;
    const fakeUser = new FakeUser();
    const made = { world, kind, fakeUser, client: await connect(kind, transport, fakeUser) };
    people.set(way, made);
    return made;
  };
}

const QUESTIONS = [
  { question: "Which library?", header: "Library", multiSelect: false, labels: ["Fast", "Small"] },
  { question: "Which parts?", header: "Parts", multiSelect: true, labels: ["Server", "Client"] },
].map(({ labels, ...rest }) => ({ ...rest, options: labels.map((label) => ({ label, description: `${label}!` })) }));

/** By title; each title lacks its subject, a person. */
const BEHAVIOURS: Readonly<Record<string, (at: AtClient) => Promise<void>>> = {
  "allows, denies with a reason, and declines, while one call waits: nothing is started twice": async ({
    client,
    fakeUser,
    world,
  }) => {
    const cwd = world.folder();
    const files = ["a", "b", "c"].map((name) => join(cwd, name));
    const answers = [
      { action: "accept", content: { decision: "allow" } },
      { action: "accept", content: { decision: "deny" } },
      { action: "accept", content: { message: "Not there, please." } },
    ] as const;
    fakeUser.does = (form, signal) => {
      const answer = answers[fakeUser.seen.length - 1];
      return answer ? { ...answer } : declineAfterReading(form, signal);
    };
    const prompt = toolCalls(files.map(writeCall));
    const answer = await client.call("claude_code", { prompt, cwd, waitMs: 40_000, title: "Write it down" });
    expect(answer).toMatchObject({ status: "idle", result: { result: "Over.", isError: false } });
    expect(files.map((file) => existsSync(file))).toEqual([true, false, false]);
    expect(readFileSync(files[0]!, "utf8")).toBe("hello");
    const fields = fakeUser.seen.map(({ properties }) => Object.keys(properties));
    expect(fields).toEqual([["decision"], ["decision"], ["message"], ["decision"]]);
    const [form, , why] = fakeUser.seen;
    expect(why?.message).toMatch(/^Denied\. Claude Code asked:\nWrite b/);
    for (const part of ["Write a (1 line)", "Risk: ", "hello", "Write it down", cwd]) {
      expect(form?.message).toContain(part);
    }
    expect(form?.properties["decision"]?.enum).toEqual(["allow", "deny", "allow_for_session"]);
    const all = await readWholeLog(client, answer.sessionId);
    expect(decisions(all)).toEqual([
      ["allow", "user"],
      ["deny", "user"],
      ["deny", "user"],
    ]);
    expect(JSON.stringify(all.events)).toContain("Not there, please.");
    expect(JSON.stringify(all.events)).toContain("The user does not allow this.");
    const prompted = world.model.requests.filter((request) => request.told.includes(files[0]!));
    expect(new Set(prompted.map(({ sessionId }) => sessionId))).toEqual(new Set([answer.sessionId]));
  },
  "closes the form: that is not an answer, and the call hands the request to the caller": async ({
    client,
    fakeUser,
    world,
  }) => {
    const cwd = world.folder();
    const file = join(cwd, "a");
    fakeUser.does = () => ({ action: "cancel" });
    const { nextCursor, sessionId } = await client.call("claude_code", { prompt: toolCalls([writeCall(file)]), cwd });
    const asked = await client.news(sessionId, nextCursor);
    expect(asked).toMatchObject({ status: "waiting_permission", actions: [{ toolName: "Write" }] });
    expect(fakeUser.seen).toHaveLength(1);
    const [{ requestId } = { requestId: "" }] = asked.actions;
    const answer = { action: "respond_permission", sessionId, requestId, decision: "allow", waitMs: 40_000 };
    expect(await client.call("claude_code_check", answer)).toMatchObject({ result: { result: "Over." } });
    expect(decisions(await readWholeLog(client, sessionId))).toEqual([["allow", "caller"]]);
    expect(fakeUser.seen).toHaveLength(1);
  },
  "allows a tool until the session ends: there is no second form": async ({ client, fakeUser, world }) => {
    const cwd = world.folder();
    const files = ["a", "b"].map((name) => join(cwd, name));
    fakeUser.does = fillForm({ decision: "allow_for_session" });
    const answer = await client.call("claude_code", { prompt: toolCalls(files.map(writeCall)), cwd, waitMs: 40_000 });
    expect(answer).toMatchObject({ status: "idle" });
    expect(files.every((file) => existsSync(file))).toBe(true);
    expect(fakeUser.seen).toHaveLength(1);
    expect(fakeUser.seen[0]?.properties["decision"]?.enumNames?.at(-1)).toBe(
      "Allow, and until the session ends also Write",
    );
  },
  "answers questions, by a choice or in words, and is asked once more when one is left out": async ({
    client,
    fakeUser,
    world,
  }) => {
    const own = "In my own words";
    const answers = [
      { answer1: "Fast" },
      { answer1: own, answer2: ["Server", "Client"] },
      { other1: "Neither: write it" },
    ];
    fakeUser.does = () => ({ action: "accept", content: answers[fakeUser.seen.length - 1]! });
    const prompt = toolCalls([{ name: "AskUserQuestion", input: { questions: QUESTIONS } }]);
    const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    expect(answer).toMatchObject({ status: "idle", result: { result: "Over." } });
    const fields = fakeUser.seen.map(({ properties }) => Object.keys(properties));
    expect(fields).toEqual([["answer1", "answer2"], ["answer1", "answer2"], ["other1"]]);
    const [first, second, words] = fakeUser.seen;
    expect(first?.properties["answer1"]?.enum).toEqual(["Fast", "Small", own]);
    expect(first?.properties["answer2"]?.items?.enum).toEqual(["Server", "Client", own]);
    expect(second?.message).toContain("The answer was not complete.");
    expect(words?.message).toContain("Which library?");
    const { events } = await readWholeLog(client, answer.sessionId);
    for (const said of ["Neither: write it", "Server", "Client"]) expect(JSON.stringify(events)).toContain(said);
  },
  "wants a plan changed, and approves the next": async ({ client, fakeUser, world }) => {
    const cwd = world.folder();
    const begin = { prompt: scriptTag([{ text: "I think." }]), cwd, permissionMode: "plan", waitMs: 40_000 };
    const { sessionId } = await client.call("claude_code", begin);
    const [, file = ""] = /"planFilePath":"([^"]+)"/.exec(world.transcript(sessionId)) ?? [];
    const plan = "# Plan\n\n1. Read everything.\n2. Change one line.";
    const show = { name: "ExitPlanMode", input: {} };
    const prompt = toolCalls([{ name: "Write", input: { file_path: file, content: plan } }, show, show]);
    const feedback = "The tests are missing.";
    const answers = [{ decision: "keep_planning" }, { feedback }, { decision: "approve" }];
    fakeUser.does = () => ({ action: "accept", content: answers[fakeUser.seen.length - 1]! });
    const answer = await client.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
    expect(answer).toMatchObject({ status: "idle", result: { result: "Over.", isError: false } });
    const fields = fakeUser.seen.map(({ properties }) => properties["decision"]?.enum ?? Object.keys(properties));
    expect(fields).toEqual([["approve", "keep_planning"], ["feedback"], ["approve", "keep_planning"]]);
    expect(fakeUser.seen[0]?.message).toContain("2. Change one line.");
    expect(JSON.stringify((await readWholeLog(client, sessionId)).events)).toContain(feedback);
  },
  "is slower than another client: the form has no effect, the call goes on, and nothing is answered twice": async ({
    client,
    fakeUser,
    kind,
    world,
  }) => {
    const cwd = world.folder();
    const file = join(cwd, "a");
    const { sessionId } = await client.call("claude_code", { prompt: toolCalls([writeCall(file)]), cwd });
    let takenBack = false;
    fakeUser.does = async (_, signal) => {
      signal.addEventListener("abort", () => (takenBack = true));
      const quick = { action: "poll", sessionId, waitMs: 0 };
      const { actions } = await client.call("claude_code_check", quick);
      const deny = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "deny" };
      await client.call("claude_code_check", { ...deny, waitMs: 0 });
      // Before revision 2026-07-28, a server can withdraw its form; since then, a withdrawn form stays open until the person
      // answers.
      if (kind !== "modern") await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return { action: "accept", content: { decision: "allow" } };
    };
    const answer = await client.end(sessionId);
    expect(answer).toMatchObject({ status: "idle", result: { result: "Over." } });
    expect(existsSync(file)).toBe(false);
    expect(takenBack).toBe(kind !== "modern");
    expect(decisions(await readWholeLog(client, sessionId))).toEqual([["deny", "caller"]]);
  },
  "is shown at most seven forms by one call, which then returns; the next call shows the rest": async ({
    client,
    fakeUser,
    world,
  }) => {
    const cwd = world.folder();
    const files = Array.from({ length: 9 }, (_, index) => join(cwd, String(index)));
    fakeUser.does = fillForm({ decision: "allow" });
    const prompt = toolCalls(files.map(writeCall));
    const { sessionId } = await client.call("claude_code", { prompt, cwd });
    const poll = { action: "poll", sessionId, waitMs: 40_000, until: "end" };
    const first = await client.call("claude_code_check", poll);
    expect(first).toMatchObject({ status: "waiting_permission", actions: [{ toolName: "Write" }] });
    expect(fakeUser.seen).toHaveLength(7);
    const second = await client.call("claude_code_check", { ...poll, cursor: first.nextCursor });
    expect(second).toMatchObject({ status: "idle", result: { result: "Over." } });
    expect(fakeUser.seen).toHaveLength(9);
    expect(files.every((file) => existsSync(file))).toBe(true);
  },
};

export async function expectBehaviour(title: string, at: AtClient): Promise<void> {
  await BEHAVIOURS[title]!(at);
}

const TITLES = Object.keys(BEHAVIOURS);
const DEALT: readonly Way[] = [
  ["modern", "stdio"],
  ["legacy", "http"],
  ["v1", "stdio"],
  ["modern", "http"],
];

/**
 * Rows for `npm test`: each behavior, kind of client and transport occurs. `is slower` stands twice, because clients of
 * 2026-07-28 differ.
 */
export const SHOWN: readonly Row[] = [...TITLES, TITLES.find((title) => title.startsWith("is slower")) ?? ""].map(
  (title, index) => [title, ...(DEALT[index % DEALT.length] ?? DEALT[0]!)] as const,
);

/** Each behavior at the other kinds of clients, over one transport; with AMOUNTS=full every combination. */
export const OTHERS: readonly Row[] = TITLES.flatMap((title, index) =>
  CLIENT_KINDS.flatMap((kind, at): Row[] => {
    const both: Row[] = [
      [title, kind, "stdio"],
      [title, kind, "http"],
    ];
    const isShown = SHOWN.some((row) => row[0] === title && row[1] === kind);
    return amount(0, 1) === 1 ? both : isShown ? [] : [both[(index + at) % 2]!];
  }),
);
