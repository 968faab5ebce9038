import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

import { checkClients } from "../../src/doctor/clients.ts";
import { planInstall, planUninstall, type Aim } from "../../src/install/change.ts";
import { CLIENTS, type Client } from "../../src/install/clients.ts";
import { hostEntries } from "../../src/install/entries.ts";
import { createPlaces } from "../../src/install/places.ts";
import { entryName, parseHost, readSshArgs, shellWord, sshArgs } from "../../src/install/ssh/host.ts";
import { findThere } from "../../src/install/ssh/search.ts";
import { listToolNames } from "../../src/tools/tool-names.ts";
import { useMachine } from "../kit/install/doctor-machine.ts";

/** Entries of servers on other machines: names, command lines and files, without a connection. */

const ODD_WORDS = ["/a b/node", "it's", 'say "x"', "$HOME `id`", "a;b|c&d", String.raw`back\slash`, "~/x", "*", ""];

describe("a host on the command line", () => {
  it.each([
    ["gpu=ssh:gpu", { name: "gpu", target: "gpu" }],
    ["dev-2=ssh:me@dev.example", { name: "dev-2", target: "me@dev.example" }],
    ["a=ssh:ssh://me@[::1]:2222", { name: "a", target: "ssh://me@[::1]:2222" }],
  ])("%s is read", (text, host) => expect(parseHost(text)).toEqual(host));

  it.each([
    ["gpu", "must be NAME=ssh:TARGET"],
    ["gpu=gpu", "must be NAME=ssh:TARGET"],
    ["gpu=ssh:", "cannot be a destination"],
    ["gpu=ssh:-oProxyCommand=id", "cannot be a destination"],
    ["gpu=ssh:a b", "cannot be a destination"],
    ["gpu=ssh:a`id`", "cannot be a destination"],
    ["gpu=ssh:$HOME", "cannot be a destination"],
    ["gpu=ssh:me@host:22", "only as ssh://me@host:22"],
    ["gpu=ssh:ssh://me:s3cret@host", "the URL is not ssh://user@host:port (a password is never part of it"],
    ["gpu=ssh:ssh://-oProxyCommand=id", "the URL is not"],
    ["gpu=ssh:ssh://host/path", "the URL is not"],
    ["gpu=ssh:ssh://host:99999", "no valid port"],
    ["a/b=ssh:gpu", 'the name "a/b" must have'],
    [`${"n".repeat(19)}=ssh:gpu`, "must have 1 to 18"],
  ])("%s is refused", (text, problem) => expect(() => parseHost(text)).toThrow(problem));

  it("the longest name of a host leaves room for every tool", () => {
    const tools = listToolNames(["all"], { enabled: true });
    const names = tools.map((tool) => `mcp__${entryName("n".repeat(18))}__${tool}`);
    expect(Math.max(...names.map(({ length }) => length))).toBeLessThanOrEqual(64);
  });
});

describe("a command line of ssh", () => {
  it("every word arrives unchanged through a shell", () => {
    const line = `printf '%s\\n' ${ODD_WORDS.map(shellWord).join(" ")}`;
    expect(execFileSync("sh", ["-c", line], { encoding: "utf8" })).toBe(`${ODD_WORDS.join("\n")}\n`);
  });

  it("the command of an entry is read back", () => {
    const words = ODD_WORDS.filter((word) => word !== "");
    expect(readSshArgs(sshArgs("me@gpu", words))).toMatchObject({ target: "me@gpu", words });
  });

  it.each([
    [["gpu", "/bin/x"], { before: [], target: "gpu", words: ["/bin/x"] }],
    [["-p", "22", "-4i", "key", "gpu"], { before: ["-p", "22", "-4i", "key"], target: "gpu", words: [] }],
    [
      ["-p22", "-T", "--", "gpu", `"/a b" c\\ d`],
      { before: ["-p22", "-T", "--"], target: "gpu", words: ["/a b", "c d"] },
    ],
    [["-T"], undefined],
    [["--", "-x"], undefined],
  ])("%j is read", (args, call) => expect(readSshArgs(args)).toEqual(call));
});

const home = mkdtempSync(join(tmpdir(), "hosts-"));
afterAll(() => rmSync(home, { recursive: true }));

function aimsAt(client: Client): Record<"here" | "gpu" | "dev", Aim> & { file: string } {
  const places = createPlaces({ HOME: home }, join(home, "project"));
  const here: Aim = { client, scope: "user", places, stateFolder: join(home, "state") };
  return {
    here,
    gpu: { ...here, host: "gpu" },
    dev: { ...here, host: "dev" },
    file: client.files.user?.(places) ?? "",
  };
}

const entryOf = ({ client, host }: Aim) =>
  client.entry({ command: "/usr/bin/ssh", args: sshArgs(host ?? "", ["/a b/x", "--toolsets", "agent"]) });

it.each(CLIENTS.map((client) => [client.title, client] as const))(
  "%s has entries of two machines beside its own, and each is removed alone",
  async (_, client) => {
    const { dev, file, gpu, here } = aimsAt(client);
    const install = async (aim: Aim, entry = entryOf(aim)) => (await planInstall(aim, entry)).perform();
    const uninstall = async (aim: Aim) => (await planUninstall(aim)).perform();
    await install(here, client.entry({ command: process.execPath, args: ["/x/main.js"] }));
    const own = readFileSync(file, "utf8");
    await install(gpu);
    const both = readFileSync(file, "utf8");
    await install(dev);
    const running = { platform: process.platform, env: {}, execPath: "", script: "", cwd: home, shared: false };
    const found = await hostEntries(here, running);
    const call = { words: ["/a b/x", "--toolsets", "agent"] };
    expect(found.map(({ aim, target }) => [aim.host, target])).toEqual([
      ["gpu", { kind: "ssh", call: expect.objectContaining({ ...call, target: "gpu" }) as unknown }],
      ["dev", { kind: "ssh", call: expect.objectContaining({ ...call, target: "dev" }) as unknown }],
    ]);
    await uninstall(dev);
    expect(readFileSync(file, "utf8")).toBe(both);
    await uninstall(gpu);
    expect(readFileSync(file, "utf8")).toBe(own);
    await install(gpu);
    await uninstall(here);
    expect((await hostEntries(here, running)).map(({ aim: { host } }) => host)).toEqual(["gpu"]);
    await uninstall(gpu);
    expect(await hostEntries(here, running)).toEqual([]);
  },
);

describe("a host that lies", () => {
  /** Writes an `ssh` that prints `lines`, each behind the mark of the search. */
  function lyingSsh(...lines: readonly string[]): string {
    const file = join(mkdtempSync(join(home, "lies-")), "ssh");
    const said = lines.map((line) => `printf '%s %b\\n' "$mark" '${line}'`);
    writeFileSync(file, `#!/bin/sh\nfor mark; do :; done\n${said.join("\n")}\n`, { mode: 0o755 });
    return file;
  }

  it("the path of its program cannot be a flag of ssh", async () => {
    const ssh = lyingSsh("word -oProxyCommand=id", "word /x/main.js", "version 1.0.0");
    await expect(findThere(ssh, "gpu")).rejects.toThrow("gpu named no absolute path");
  });

  it("its messages cannot control the terminal", async () => {
    const ssh = lyingSsh(String.raw`seen /x/\033[2Jclaude-agents-mcp`, "failed Error: no");
    const problem: unknown = await findThere(ssh, "gpu").catch((error: unknown) => error);
    expect(String(problem)).toContain("/x/[2Jclaude-agents-mcp on gpu does not start: Error: no");
  });
});

describe("doctor and entries of other machines", () => {
  const machine = useMachine();
  const cursor = CLIENTS.find(({ id }) => id === "cursor")!;

  /** Writes an entry, and an `ssh` that notes its arguments and answers with `script`. */
  function write(
    folder: string,
    script: string,
    args = sshArgs("gpu", ["/x/node", "/x/main.js", "--sandbox", "required"]),
  ) {
    const file = machine.at(folder, ".cursor", "mcp.json");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(
      file,
      JSON.stringify({ mcpServers: { "claude-agents-mcp-gpu": cursor.entry({ command: "ssh", args }) } }),
    );
    const text = `#!/bin/sh\necho "$*" >> "${machine.at("ran")}"\n${script}\n`;
    writeFileSync(machine.at("bin", "ssh"), text, { mode: 0o755 });
  }

  it("an entry of the user is asked for its version", async () => {
    write(".", "echo 0.9.0");
    expect((await checkClients(machine.toMachine())).map(({ level, text }) => [level, text])).toEqual([
      ["ok", "MCP clients and what they use. Cursor: a server on gpu by ssh."],
      ["ok", "Cursor reaches gpu by ssh on gpu: version 0.9.0 there."],
    ]);
    expect(readFileSync(machine.at("ran"), "utf8")).toContain(" gpu /x/node /x/main.js --sandbox required --version\n");
  });

  it("a server that does not start there gets the command that finds it again, with its flags", async () => {
    write(".", "echo 'sh: 1: /x/node: not found' >&2; exit 127");
    const [found] = await checkClients(machine.toMachine());
    expect(found).toMatchObject({
      level: "warning",
      text: expect.stringContaining("it does not start: sh: 1: /x/node: not found") as unknown,
      fix: "claude-agents-mcp install --host gpu=ssh:gpu cursor -- --sandbox required",
    });
  });

  it("an entry of a project is never run, because its flags may run commands", async () => {
    write("work", "echo 0.9.0", ["-o", "ProxyCommand=touch x", "gpu", "/x/main.js"]);
    const [, found] = await checkClients(machine.toMachine());
    expect(found).toMatchObject({ level: "ok", text: expect.stringContaining("not tried, because") as unknown });
    expect(existsSync(machine.at("ran"))).toBe(false);
  });
});
