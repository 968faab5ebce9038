import { appendFileSync, cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer, Connection } from "../kit/clients/connection.ts";
import { stream } from "../kit/clients/streaming.ts";
import { overHttp, overStdio } from "../kit/clients/tasks-client.ts";
import { ENVIRONMENT, repository } from "../kit/git-repository.ts";
import { LIES } from "../kit/sessions/lies.ts";
import { bash, expectTruth, projectIn, write } from "../kit/sessions/lying-turn.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let server: Server;
let template: string;
beforeAll(async () => {
  server = await world.server();
  template = world.folder();
  projectIn(template);
});

/** Creates a copy of the repository. */
function project(): string {
  const folder = world.folder();
  cpSync(template, folder, { recursive: true, preserveTimestamps: true });
  return folder;
}

const WAIT = { waitMs: 40_000 };

/** Runs the first turn of a session. */
async function begin(cwd: string, script: object[], more: object = WAIT): Promise<Answer> {
  const prompt = scriptTag(script);
  return server.call("claude_code", { prompt, cwd, allowedTools: ["Bash", "Write"], ...more });
}

async function reply(sessionId: string, script: object[], more: object = {}): Promise<Answer> {
  return server.call("claude_code_reply", { sessionId, prompt: scriptTag(script), ...WAIT, ...more });
}

const receiptOf = ({ result }: Answer): unknown => result?.["receipt"];

describe("whatever Claude Code says", () => {
  it.concurrent.each(Object.entries(LIES))("the receipt is true of %s", async (_, lie) => {
    await expectTruth(server, lie, project(), world.folder());
  });
});

it("the first tool call waits for the look before the turn, so its change is one of the turn", async () => {
  const [bin, cwd] = [world.folder(), project()];
  const quick = join(bin, "quick");
  const slowGit = `#!/bin/sh\n[ -e ${quick} ] || sleep 0.5\nPATH=${ENVIRONMENT.PATH} exec git "$@"\n`;
  writeFileSync(join(bin, "git"), slowGit, { mode: 0o755 });
  const slow = await world.server({ env: { PATH: `${bin}:${ENVIRONMENT.PATH}` } });
  const prompt = scriptTag([bash(`touch ${quick}; echo 1 >> package.json`), { text: "Done." }]);
  const answer = await slow.call("claude_code", { prompt, cwd, allowedTools: ["Bash"], ...WAIT });
  expect(receiptOf(answer)).toMatchObject({
    by: "tree",
    complete: true,
    files: { changed: 1, names: ["package.json"] },
  });
});

describe("a receipt of one turn among others", () => {
  it.concurrent("changes by a person between two turns are counted, and none is one of the turn", async () => {
    const cwd = project();
    const { sessionId } = await begin(cwd, [write(join(cwd, "new.txt")), { text: "Done." }]);
    appendFileSync(join(cwd, "new.txt"), "3\n");
    writeFileSync(join(cwd, "by-person.txt"), "1\n");
    rmSync(join(cwd, "package.json"));
    const next = await reply(sessionId, [bash("echo 4 >> new.txt"), { text: "I wrote by-person.txt." }]);
    expect(receiptOf(next)).toEqual({
      turn: 2,
      by: "tree",
      complete: true,
      files: { changed: 1, lines: [1, 0], names: ["new.txt"] },
      commands: { run: 1 },
      between: 3,
    });
  });

  it.concurrent("another session in the folder is counted, and its changes during the turn are told", async () => {
    const cwd = project();
    const gate = `other-${cwd}`;
    const other = await begin(
      cwd,
      [bash("sleep 0"), { gateBefore: gate, ...write(join(cwd, "by-other.txt")) }, { text: "Done." }],
      {},
    );
    const told = await begin(cwd, [bash("true"), { text: "Done." }]);
    expect(receiptOf(told)).toMatchObject({ commands: { run: 1 }, others: 1 });
    expect(receiptOf(told)).not.toHaveProperty("files");
    world.model.release(gate);
    expect(receiptOf(await server.end(other.sessionId))).toMatchObject({ files: { added: 1 }, others: 1 });
  });

  it.concurrent("a turn that Claude Code begins by itself starts from the last receipt", async () => {
    const cwd = project();
    const go = join(cwd, "go.log");
    const late = bash(`while [ ! -e ${go} ]; do sleep 0.05; done; echo x > late.txt`, { run_in_background: true });
    // Without hooks, only the background work is a reason to look.
    const more = { ...WAIT, advanced: { settingSources: [] } };
    const first = await begin(cwd, [late, { text: "It runs." }, { text: "Nothing has changed." }], more);
    expect(receiptOf(first)).toMatchObject({ turn: 1, background: 1 });
    expect(receiptOf(first)).not.toHaveProperty("files");
    writeFileSync(go, "");
    const { sessionId } = first;
    let next = first;
    while (next.result?.result !== "Nothing has changed.") {
      const poll = { action: "poll", sessionId, cursor: next.nextCursor, until: "event", ...WAIT };
      next = await server.call("claude_code_check", poll);
    }
    expect(receiptOf(next)).toEqual({
      turn: 2,
      by: "tree",
      complete: true,
      files: { added: 1, lines: [1, 0], names: ["late.txt"] },
    });
  });

  it.concurrent("a fork, and a session that is resumed from disk, start from the folder as it is", async () => {
    const cwd = project();
    const { sessionId } = await begin(cwd, [write(join(cwd, "new.txt")), { text: "Done." }]);
    writeFileSync(join(cwd, "by-person.txt"), "1\n");
    const turn = [bash("echo 3 >> new.txt"), { text: "Done." }];
    const seen = { by: "tree", complete: true, files: { changed: 1, lines: [1, 0], names: ["new.txt"] } };
    const fork = await reply(sessionId, turn, { forkSession: true });
    expect(receiptOf(fork)).toEqual({ turn: 1, ...seen, commands: { run: 1 } });
    await server.call("claude_code_session", { action: "close", sessionId });
    const store = ["--store", join(world.folder(), "sessions.db")];
    const elsewhere = await world.server({ args: store, env: { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: "1" } });
    const diskResumeConfig = { allowedTools: ["Bash"] };
    const prompt = scriptTag(turn);
    const resumed = await elsewhere.call("claude_code_reply", { sessionId, prompt, diskResumeConfig, ...WAIT });
    expect(receiptOf(resumed)).toEqual({ turn: 1, ...seen, commands: { run: 1 } });
  });

  it.concurrent("an interrupted turn has a receipt of all that it did before", async () => {
    const cwd = project();
    const gate = `interrupted-${cwd}`;
    const script = [write(join(cwd, "new.txt")), { gateBefore: gate, text: "I wrote nothing." }];
    const { sessionId } = await begin(cwd, script, {});
    await world.model.waitForRequest(
      ({ served, told }) => "entry" in served && served.entry === 1 && told.includes(gate),
    );
    await server.call("claude_code_session", { action: "interrupt", sessionId });
    const ended = await server.end(sessionId);
    expect(ended.result).toMatchObject({ errorSubtype: "interrupted" });
    expect(receiptOf(ended)).toEqual({
      turn: 1,
      by: "tree",
      complete: true,
      files: { added: 1, lines: [2, 0], names: ["new.txt"] },
    });
  });
});

const DETAILS = { CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: "1" };
const ARGS = ["--toolsets", "all", "--allow-rules", "Bash,Write,Read"];

/** Creates a repository with `b.txt` and a changed `a.txt`, and the script of a turn that works in it and lies. */
function task() {
  const cwd = world.folder();
  repository(cwd, "one");
  const prompt = scriptTag([
    { tools: [{ name: "Write", input: { file_path: join(cwd, "new.txt"), content: "1\n2\n" } }] },
    { tools: [{ name: "Bash", input: { command: "sed -i s/b/c/ b.txt" } }] },
    { tools: [{ name: "Bash", input: { command: "exit 3" } }] },
    { text: "I wrote new.txt and nothing else." },
  ]);
  return { cwd, prompt };
}

/** Receipt of `task`: `b.txt` is seen, although only `sed` changed it, and `a.txt` is not, because it was changed before. */
const SEEN = {
  turn: 1,
  by: "tree",
  complete: true,
  files: { added: 1, changed: 1, lines: [3, 1], names: ["b.txt", "new.txt"] },
  commands: { run: 2, failed: 1 },
};

let http: HttpServer;
beforeAll(async () => {
  http = await world.http({ args: ARGS, env: DETAILS });
});
const over = {
  stdio: async (): Promise<Connection> => world.server({ args: ARGS, env: DETAILS }),
  http: async (): Promise<Connection> => http.connect(),
};

describe.each(["stdio", "http"] as const)("a turn over %s that changes files and runs commands", (way) => {
  let client: Connection;
  beforeAll(async () => {
    client = await over[way]();
  });

  it("the result of `claude_code` and of each poll has the receipt, and action `receipt` of `claude_code_session` shows all of it by its `turn`", async () => {
    const { cwd, prompt } = task();
    const begun = await client.call("claude_code", { prompt, cwd, ...WAIT });
    expect(begun.result).toMatchObject({ result: "I wrote new.txt and nothing else.", receipt: SEEN });
    const { sessionId } = begun;
    const poll = await client.call("claude_code_check", { action: "poll", sessionId, cursor: begun.nextCursor });
    expect(poll.result).toMatchObject({ receipt: SEEN });
    const get = { action: "get", sessionId, includeSensitive: true };
    expect((await client.call("claude_code_session", get)).sessions).toMatchObject([{ receipt: SEEN }]);
    const whole = await client.call("claude_code_session", { action: "receipt", sessionId, turn: 1 });
    expect(whole["receipt"]).toMatchObject({
      turn: 1,
      files: [
        { path: "b.txt", change: "changed", lines: [1, 1], by: ["tree"] },
        { path: "new.txt", change: "added", lines: [2, 0], by: ["tree", "Write"] },
      ],
      commands: [
        { command: "sed -i s/b/c/ b.txt", exit: 0 },
        { command: "exit 3", exit: 3 },
      ],
    });
    const again = await client.call("claude_code_reply", { sessionId, prompt: scriptTag([{ text: "No." }]), ...WAIT });
    expect(again.result).toMatchObject({ receipt: { turn: 2 } });
    expect(JSON.stringify(again.result)).not.toContain("new.txt");
  });

  it("the answers of a query and of conversations have the receipt", async () => {
    const data = async (tool: string, args: Record<string, unknown>) => (await stream(client, tool, args)).data;
    expect(await data("claude_code_query", { ...task(), allowedTools: ["Bash", "Write"] })).toMatchObject({
      status: "done",
      receipt: SEEN,
    });
    expect(await data("claude_direct_query", task())).toMatchObject({ metadata: { receipt: SEEN } });
    const { cwd, prompt } = task();
    const { sessionId } = await data("claude_session_create", { cwd });
    expect(await data("claude_chat_query", { sessionId, prompt })).toMatchObject({ metadata: { receipt: SEEN } });
  });
});

it.each(["http", "stdio"] as const)("a task over %s completes with the receipt", async (way) => {
  const client = way === "http" ? overHttp(http) : overStdio(await world.server({ args: ARGS, client: "2026-07-28" }));
  const { task: begun } = await client.begin("claude_code", task());
  const done = await client.until(begun, "completed");
  expect(JSON.stringify(done)).toContain('"names":["b.txt","new.txt"]');
});

it("with --receipt off a result has no receipt, and action `receipt` of `claude_code_session` reads the log only", async () => {
  const silent = await world.server({ args: [...ARGS, "--receipt", "off"] });
  const { result, sessionId } = await silent.call("claude_code", { ...task(), ...WAIT });
  expect(result).toMatchObject({ isError: false });
  expect(result).not.toHaveProperty("receipt");
  const { receipt } = await silent.call("claude_code_session", { action: "receipt", sessionId });
  expect(receipt).toMatchObject({ by: "tools", complete: false, files: [{ path: "new.txt", by: ["Write"] }] });
});
