import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** Tests clients of one daemon, each with a separate environment. */

const world = useWorld({ agent: "stand-in" });
afterEach(async () => world.closeServers());

const NAMES = ["one", "two", "three"] as const;
type Name = (typeof NAMES)[number];
const secretOf = (name: Name) => `the-secret-of-${name}`;
const keyOf = (name: Name) => `the-key-of-${name}`;
const ARGS = ["--allow-rules", "Bash"];
const home = () => join(world.configFolder, "..");

/** Exists once the `git` of client `name` has run. */
const gitOf = (name: Name) => join(home(), `git-of-${name}`);

/** Environment of a client, with a `who` and a `git` that no other client finds. */
function environmentOf(name: Name): Record<string, string> {
  const bin = join(home(), `bin-of-${name}`);
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "who"), `#!/bin/sh\necho ${name}\n`, { mode: 0o755 });
  writeFileSync(join(bin, "git"), `#!/bin/sh\ntouch ${gitOf(name)}\nexit 1\n`, { mode: 0o755 });
  const PATH = `${bin}:${process.env["PATH"] ?? ""}`;
  return { A_TOKEN: secretOf(name), ANTHROPIC_API_KEY: keyOf(name), PATH };
}

interface StartedSession {
  readonly name: Name;
  readonly sessionId: string;
  readonly at: (file: string) => string;
}

/** Writes the environment and the output of `who` to `file`, atomically. */
const record = (file: string) => `env > ${file}.new; who >> ${file}.new; mv ${file}.new ${file}`;

function promptOf(commands: readonly string[], text: string): string {
  return scriptTag([...commands.map((command) => ({ tools: [{ name: "Bash", input: { command } }] })), { text }]);
}

/** Starts a session that records its environment, waits for the file `go`, records it again, and prints all secrets. */
async function startSession(client: Server, name: Name): Promise<StartedSession> {
  const cwd = world.folder();
  const at = (file: string) => join(cwd, file);
  writeFileSync(at("secrets"), NAMES.map(secretOf).join(" "));
  const waits = "until [ -e go ]; do sleep 0.05; done";
  const commands = ["echo $PPID > pid", record("before"), waits, record("after"), "cat secrets; cat secrets >&2"];
  const { sessionId } = await client.call("claude_code", { prompt: promptOf(commands, "done"), cwd });
  await expect.poll(() => existsSync(at("before")), { timeout: 30_000 }).toBe(true);
  return { name, sessionId, at };
}

async function startSessions(connect: (env: Record<string, string>) => Promise<Server>) {
  const begun = NAMES.map(async (name) => {
    const client = await connect(environmentOf(name));
    return { client, session: await startSession(client, name) };
  });
  return Promise.all(begun);
}

const connectShared = async (env: Record<string, string>) => world.shared({ args: ARGS, env });

/** Expects that commands of the session saw the environment of client `name` alone. */
function expectSeen({ at }: StartedSession, file: string, name: Name): void {
  const seen = readFileSync(at(file), "utf8");
  expect(seen.trim().split("\n").at(-1)).toBe(name);
  expect(NAMES.filter((each) => seen.includes(secretOf(each)))).toEqual([name]);
}

/** Expects messages stored after event `behind` to mask the secrets of `names`, and no others. */
async function expectMasked({ sessionId }: StartedSession, names: readonly Name[], behind = 0): Promise<void> {
  const log = (await storedEvents(home(), sessionId)).filter(({ id, type }) => type === "message" && id > behind);
  const said = log.map(({ event }) => event).join("\n");
  expect(said).toContain("[masked]");
  expect(NAMES.filter((name) => said.includes(secretOf(name)))).toEqual(NAMES.filter((name) => !names.includes(name)));
}

/** Paths of all files in the home folder, except in the folders of sessions. */
function keptFiles(): string[] {
  const kept = readdirSync(home(), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return kept.map(({ name, parentPath }) => join(parentPath, name)).filter((file) => !file.includes("/work-"));
}

it("each session has the environment of its client, and the daemon's log has no secret of any client", async () => {
  const daemon = await world.daemon({ args: ARGS });
  for (const { client, session } of await startSessions(async (env) => daemon.client({ env }))) {
    writeFileSync(session.at("go"), "");
    await client.end(session.sessionId);
    for (const file of ["before", "after"]) expectSeen(session, file, session.name);
    await expectMasked(session, [session.name]);
    // Removes marks from Claude Code, which has run `git` as well.
    for (const name of NAMES) rmSync(gitOf(name), { force: true });
    await client.call("claude_code_session", { action: "diff", sessionId: session.sessionId });
    expect(NAMES.filter((name) => existsSync(gitOf(name)))).toEqual([session.name]);
  }
  expect(NAMES.filter((name) => daemon.stderr().includes(secretOf(name)))).toEqual([]);
});

it("turns keep their own environments, masked, when their daemon is killed and their clients have left", async () => {
  const begun = await startSessions(connectShared);
  const daemons = world.daemons();
  expect(daemons).toHaveLength(1);
  await Promise.all(begun.map(async ({ client }) => client.close()));
  for (const pid of daemons) process.kill(pid, "SIGKILL");
  // The shim starts the next daemon.
  for (const { session } of begun) {
    writeFileSync(session.at("go"), "");
    await expect.poll(() => existsSync(session.at("after")), { timeout: 30_000 }).toBe(true);
  }
  const reader = await connectShared(environmentOf("one"));
  for (const { session } of begun) {
    expect(await reader.end(session.sessionId)).toMatchObject({ result: { result: "done", isError: false } });
    expectSeen(session, "after", session.name);
    await expectMasked(session, [session.name]);
  }
  const files = keptFiles();
  expect(files.filter((file) => /store\.db$|\.log$/.test(file)).length).toBeGreaterThan(1);
  // Looks for `keyOf` alone: each session prints `secretOf` of clients unrelated to the session, unmasked.
  expect(files.filter((file) => NAMES.some((name) => readFileSync(file, "latin1").includes(keyOf(name))))).toEqual([]);
  const logs = files.filter((file) => file.endsWith(".log")).map((file) => readFileSync(file, "utf8"));
  expect(NAMES.filter((name) => logs.join("").includes(secretOf(name)))).toEqual([]);
});

it("a prompt starts a process in its client's environment, or in the session's if CLAUDE_CONFIG_DIR differs", async () => {
  const daemon = await world.daemon({ args: ARGS });
  const client = await daemon.client({ env: environmentOf("one") });
  const session = await startSession(client, "one");
  const { at, sessionId } = session;
  const ofType = async (type: string) => (await storedEvents(home(), sessionId)).filter((each) => each.type === type);
  writeFileSync(at("go"), "");
  await client.end(sessionId);
  const [first] = await ofType("turn.ended");
  expect(first).toBeDefined();
  // First with the configuration folder of the session, then with another.
  const envs = [environmentOf("two"), { ...environmentOf("three"), CLAUDE_CONFIG_DIR: world.folder() }];
  for (const [count, env] of envs.entries()) {
    process.kill(Number(readFileSync(at("pid"), "utf8")), "SIGKILL");
    await expect.poll(async () => ofType("process.exited")).toHaveLength(count + 1);
    const prompt = promptOf(["echo $PPID > pid", record(`seen-${String(count)}`), "cat secrets"], "later");
    const sender = await daemon.client({ env });
    const answer = await sender.call("claude_code_reply", { sessionId, prompt, waitMs: 30_000 });
    expect(answer).toMatchObject({ result: { result: "later" } });
    expectSeen(session, `seen-${String(count)}`, "two");
  }
  await expectMasked(session, ["one", "two"], first?.id);
  const notices = (await ofType("notice")).map(({ event }) => event).filter((event) => event.includes("credential"));
  expect(notices).toEqual([expect.stringContaining("ANTHROPIC_API_KEY")]);
  expect(notices.join("")).not.toContain("the-key-of");
});

it("a queued prompt gets the environment of its session after the daemon and the process were killed", async () => {
  const daemon = await world.daemon({ args: ARGS, name: "queued" });
  const client = await daemon.client({ env: environmentOf("one") });
  const session = await startSession(client, "one");
  const { at, sessionId } = session;
  const queued = { whenBusy: "queue", prompt: promptOf([record("queued"), "cat secrets"], "queued") };
  await client.call("claude_code_reply", { sessionId, ...queued });
  await client.close();
  await daemon.end("SIGKILL");
  process.kill(Number(readFileSync(at("pid"), "utf8")), "SIGKILL");
  const next = await world.daemon({ args: ARGS, name: "queued" });
  // The session cannot go on with this configuration folder, so it keeps the environment of its last process.
  const other = await next.client({ env: { ...environmentOf("two"), CLAUDE_CONFIG_DIR: world.folder() } });
  expect(await other.end(sessionId)).toMatchObject({ result: { errorSubtype: "lost" } });
  await other.call("claude_code_session", { action: "release_queue", sessionId });
  expect(await other.end(sessionId)).toMatchObject({ result: { result: "queued" } });
  expectSeen(session, "queued", "one");
  await expectMasked(session, ["one"]);
});
