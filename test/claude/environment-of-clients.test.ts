import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Processes started by the real Claude Code for clients of a daemon, each with the environment of its session's client. */

const world = useWorld();

interface Person {
  readonly name: string;
  readonly client: Server;
  readonly cwd: string;
  /** Variables of this client alone. */
  readonly own: Readonly<Record<string, string>>;
}

/** Writes the environment and the output of `who-is-it` to `file`, renamed into place when complete. */
const writeEnvironment = (file: string) => `{ env; who-is-it; } > ${file}.new; mv ${file}.new ${file}`;

/** True for the environment file of a `git` run by a client. */
const isOfGit = (file: string) => /^git-\d+$/.test(file);

const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });

/** An MCP server that writes its environment to `file` at its start. */
const environmentServer = (file: string) => ({
  command: "sh",
  args: [
    "-c",
    `${writeEnvironment(file)}; exec '${process.execPath}' '${resolve("test/kit/servers/least-server.mjs")}'`,
  ],
});

function programsOf(name: string, cwd: string): string {
  const bin = world.folder();
  writeFileSync(join(bin, "who-is-it"), `#!/bin/sh\necho ${name}\n`, { mode: 0o755 });
  writeFileSync(join(bin, "git"), `#!/bin/sh\n${writeEnvironment(join(cwd, `git-$$`))}\nexit 1\n`, { mode: 0o755 });
  return bin;
}

async function connect(name: string, trusted: string): Promise<Person> {
  const [config, cwd] = [world.folder(), join(trusted, name)];
  execFileSync("git", ["init", "-q", cwd]);
  const hooks = { PreToolUse: [{ hooks: [{ type: "command", command: writeEnvironment(join(cwd, "hook")) }] }] };
  writeFileSync(join(config, "settings.json"), JSON.stringify({ hooks, enableAllProjectMcpServers: true }));
  writeFileSync(
    join(cwd, ".mcp.json"),
    JSON.stringify({ mcpServers: { found: environmentServer(join(cwd, "found")) } }),
  );
  const own = {
    ANTHROPIC_API_KEY: `key-of-${name}-0123456789`,
    CLAUDE_CONFIG_DIR: config,
    MY_API_TOKEN: `token-of-${name}-0123456789`,
    PATH: `${programsOf(name, cwd)}:${process.env["PATH"] ?? ""}`,
  };
  const args = ["--allow-rules", "Bash", "--trust-dir", trusted];
  return { name, cwd, own, client: await world.shared({ args, env: own }) };
}

/** Expects the environment of the client in `file`, without values of the other client. */
function expectSeen(file: string, { cwd, name, own }: Person, other: Person): void {
  const text = readFileSync(join(cwd, file), "utf8");
  const lines = text.trim().split("\n");
  expect(lines.at(-1)).toBe(name);
  // Claude Code does not pass `ANTHROPIC_API_KEY` to its git.
  const expected = Object.entries(own).filter(([variable]) => !(isOfGit(file) && variable === "ANTHROPIC_API_KEY"));
  expect(lines).toEqual(expect.arrayContaining(expected.map(([variable, value]) => `${variable}=${value}`)));
  expect(Object.values(other.own).filter((value) => text.includes(value))).toEqual([]);
}

async function begin({ client, cwd }: Person): Promise<string> {
  const prompt = scriptTag([bash(`echo $PPID > pid; ${writeEnvironment("bash")}`), { text: "looked" }]);
  const advanced = { mcpServers: { given: environmentServer(join(cwd, "given")) } };
  return (await client.call("claude_code", { prompt, cwd, advanced })).sessionId;
}

async function expectOwn(sessionId: string, one: Person, other: Person): Promise<void> {
  expect(await one.client.end(sessionId)).toMatchObject({ result: { result: "looked", isError: false } });
  const ofGit = readdirSync(one.cwd).filter((file) => isOfGit(file));
  expect(ofGit).not.toEqual([]);
  for (const file of ["bash", "hook", "given", "found", ...ofGit]) expectSeen(file, one, other);
}

/** Expects that a prompt of `other` runs in the session's process. */
async function expectKept(sessionId: string, one: Person, other: Person): Promise<void> {
  rmSync(join(one.cwd, "hook"));
  const prompt = scriptTag([bash(`[ $PPID = $(cat pid) ] && ${writeEnvironment("reply")}`), { text: "replied" }]);
  const replied = await other.client.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
  expect(replied).toMatchObject({ result: { result: "replied", isError: false } });
  for (const file of ["reply", "hook"]) expectSeen(file, one, other);
}

it("tools, hooks, MCP servers and git have the environment of their session's client, even when another client replies", async () => {
  const trusted = world.folder();
  const [ann, bob] = [await connect("ann", trusted), await connect("bob", trusted)];
  const [ofAnn, ofBob] = await Promise.all([begin(ann), begin(bob)]);
  await Promise.all([expectOwn(ofAnn, ann, bob), expectOwn(ofBob, bob, ann)]);
  expect(world.daemons()).toHaveLength(1);
  await Promise.all([expectKept(ofAnn, ann, bob), expectKept(ofBob, bob, ann)]);
});
