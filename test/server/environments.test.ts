import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** Clients of one daemon, each with an environment of its own. */

const world = useWorld({ agent: "stand-in" });
afterEach(async () => world.closeServers());

const NAMES = ["one", "two", "three"] as const;
type Name = (typeof NAMES)[number];
const secretOf = (name: Name) => `the-secret-of-${name}`;
const keyOf = (name: Name) => `the-key-of-${name}`;
const ARGS = ["--allow-rules", "Bash"];
const home = () => join(world.configFolder, "..");

/** There once the git of this client has run. */
const gitOf = (name: Name) => join(home(), `git-of-${name}`);

/** The environment of a client, with programs that only it finds. */
function environmentOf(name: Name): Record<string, string> {
  const bin = join(home(), `bin-of-${name}`);
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "who"), `#!/bin/sh\necho ${name}\n`, { mode: 0o755 });
  writeFileSync(join(bin, "git"), `#!/bin/sh\ntouch ${gitOf(name)}\nexit 1\n`, { mode: 0o755 });
  const PATH = `${bin}:${process.env["PATH"] ?? ""}`;
  return { A_TOKEN: secretOf(name), ANTHROPIC_API_KEY: keyOf(name), PATH };
}

interface Begun {
  readonly name: Name;
  readonly sessionId: string;
  readonly at: (file: string) => string;
}

/** Writes the environment of a command, and which `who` it finds. */
const look = (file: string) => `env > ${file}.new; who >> ${file}.new; mv ${file}.new ${file}`;

function promptOf(commands: readonly string[], text: string): string {
  return scriptTag([...commands.map((command) => ({ tools: [{ name: "Bash", input: { command } }] })), { text }]);
}

/** Starts a session that looks at its environment, waits for the file `go`, looks again, and tells all secrets that there are. */
async function begin(client: Server, name: Name): Promise<Begun> {
  const cwd = world.folder();
  const at = (file: string) => join(cwd, file);
  writeFileSync(at("secrets"), NAMES.map(secretOf).join(" "));
  const waits = "until [ -e go ]; do sleep 0.05; done";
  const commands = ["echo $PPID > pid", look("before"), waits, look("after"), "cat secrets; cat secrets >&2"];
  const { sessionId } = await client.call("claude_code", { prompt: promptOf(commands, "done"), cwd });
  await expect.poll(() => existsSync(at("before")), { timeout: 30_000 }).toBe(true);
  return { name, sessionId, at };
}

async function beginAll(connect: (env: Record<string, string>) => Promise<Server>) {
  const begun = NAMES.map(async (name) => {
    const client = await connect(environmentOf(name));
    return { client, session: await begin(client, name) };
  });
  return Promise.all(begun);
}

const connectShared = async (env: Record<string, string>) => world.shared({ args: ARGS, env });

/** What commands of the session have seen: the environment of this client alone. */
function expectSeen({ at }: Begun, file: string, name: Name): void {
  const seen = readFileSync(at(file), "utf8");
  expect(seen.trim().split("\n").at(-1)).toBe(name);
  expect(NAMES.filter((each) => seen.includes(secretOf(each)))).toEqual([name]);
}

/** What Claude Code has said behind an event, as it is stored: these secrets are masked, and no others. */
async function expectMasked({ sessionId }: Begun, names: readonly Name[], behind = 0): Promise<void> {
  const log = (await storedEvents(home(), sessionId)).filter(({ id, type }) => type === "message" && id > behind);
  const said = log.map(({ event }) => event).join("\n");
  expect(said).toContain("[masked]");
  expect(NAMES.filter((name) => said.includes(secretOf(name)))).toEqual(NAMES.filter((name) => !names.includes(name)));
}

/** All that is kept in the home folder, but for the folders of sessions. */
function keptFiles(): string[] {
  const kept = readdirSync(home(), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return kept.map(({ name, parentPath }) => join(parentPath, name)).filter((file) => !file.includes("/work-"));
}

it("each session has the environment of its client, and the log of the daemon has no secret of any", async () => {
  const daemon = await world.daemon({ args: ARGS });
  for (const { client, session } of await beginAll(async (env) => daemon.client({ env }))) {
    writeFileSync(session.at("go"), "");
    await client.end(session.sessionId);
    for (const file of ["before", "after"]) expectSeen(session, file, session.name);
    await expectMasked(session, [session.name]);
    // Claude Code has asked its git as well.
    for (const name of NAMES) rmSync(gitOf(name), { force: true });
    await client.call("claude_code_session", { action: "diff", sessionId: session.sessionId });
    expect(NAMES.filter((name) => existsSync(gitOf(name)))).toEqual([session.name]);
  }
  expect(NAMES.filter((name) => daemon.stderr().includes(secretOf(name)))).toEqual([]);
});

it("turns go on in their own environments, masked, when their daemon is killed and their clients have left", async () => {
  const begun = await beginAll(connectShared);
  const daemons = world.daemons();
  expect(daemons).toHaveLength(1);
  await Promise.all(begun.map(async ({ client }) => client.close()));
  for (const pid of daemons) process.kill(pid, "SIGKILL");
  // The shim starts the next one.
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
  // Of the other secrets, sessions have told those of clients that they have had nothing to do with.
  expect(files.filter((file) => NAMES.some((name) => readFileSync(file, "latin1").includes(keyOf(name))))).toEqual([]);
  const logs = files.filter((file) => file.endsWith(".log")).map((file) => readFileSync(file, "utf8"));
  expect(NAMES.filter((name) => logs.join("").includes(secretOf(name)))).toEqual([]);
});

it("a prompt starts a process in the environment of its client, or in the session's where that is another's", async () => {
  const daemon = await world.daemon({ args: ARGS });
  const client = await daemon.client({ env: environmentOf("one") });
  const session = await begin(client, "one");
  const { at, sessionId } = session;
  const ofType = async (type: string) => (await storedEvents(home(), sessionId)).filter((each) => each.type === type);
  writeFileSync(at("go"), "");
  await client.end(sessionId);
  const [{ id: firstEnd } = { id: 0 }] = await ofType("turn.ended");
  // With the configuration of the session, and with another one.
  const envs = [environmentOf("two"), { ...environmentOf("three"), CLAUDE_CONFIG_DIR: world.folder() }];
  for (const [count, env] of envs.entries()) {
    process.kill(Number(readFileSync(at("pid"), "utf8")), "SIGKILL");
    await expect.poll(async () => ofType("process.exited")).toHaveLength(count + 1);
    const prompt = promptOf(["echo $PPID > pid", look(`seen-${String(count)}`), "cat secrets"], "later");
    const sender = await daemon.client({ env });
    const answer = await sender.call("claude_code_reply", { sessionId, prompt, waitMs: 30_000 });
    expect(answer).toMatchObject({ result: { result: "later" } });
    expectSeen(session, `seen-${String(count)}`, "two");
  }
  await expectMasked(session, ["one", "two"], firstEnd);
  const notices = (await ofType("notice")).map(({ event }) => event).filter((event) => event.includes("credential"));
  expect(notices).toEqual([expect.stringContaining("ANTHROPIC_API_KEY")]);
  expect(notices.join("")).not.toContain("the-key-of");
});

it("a queued prompt gets a process in the environment of its session when the daemon and the process were killed", async () => {
  const daemon = await world.daemon({ args: ARGS, name: "queued" });
  const client = await daemon.client({ env: environmentOf("one") });
  const session = await begin(client, "one");
  const { at, sessionId } = session;
  const queued = { whenBusy: "queue", prompt: promptOf([look("queued"), "cat secrets"], "queued") };
  await client.call("claude_code_reply", { sessionId, ...queued });
  await client.close();
  await daemon.end("SIGKILL");
  process.kill(Number(readFileSync(at("pid"), "utf8")), "SIGKILL");
  const next = await world.daemon({ args: ARGS, name: "queued" });
  // A client that the session cannot go on with has it go on in the environment that its process has left.
  const other = await next.client({ env: { ...environmentOf("two"), CLAUDE_CONFIG_DIR: world.folder() } });
  expect(await other.end(sessionId)).toMatchObject({ result: { errorSubtype: "lost" } });
  await other.call("claude_code_session", { action: "release_queue", sessionId });
  expect(await other.end(sessionId)).toMatchObject({ result: { result: "queued" } });
  expectSeen(session, "queued", "one");
  await expectMasked(session, ["one"]);
});
