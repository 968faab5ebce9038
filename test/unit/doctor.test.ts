import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";

import { afterEach, describe, expect, it, vi } from "vitest";

import { doctor } from "../../src/cli/doctor.ts";
import { createProcessTag, TAG_VARIABLE } from "../../src/claude/supervise/process-tag.ts";
import { createPrivateFolder } from "../../src/daemon/socket-folders.ts";
import { CHECKS, examine } from "../../src/doctor/checks.ts";
import type { Finding } from "../../src/doctor/finding.ts";
import { CLAUDE, useMachine } from "../kit/install/doctor-machine.ts";

/**
 * Broken machines, made in folders. A finding names each fault; the command of the finding or `--fix` repairs the machine if a
 * test can run the command. `test/server/doctor.test.ts` has faults for which the built program is needed.
 */

const machine = useMachine();
const { at } = machine;
const started: ChildProcess[] = [];
const servers: Server[] = [];

afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
  for (const server of servers.splice(0)) server.close();
});

it("`doctor` finds nothing wrong on a healthy machine", async () => {
  expect(await machine.faults()).toEqual([]);
  const ids = (await examine(machine.toMachine(), () => undefined)).map(({ id }) => id);
  // `doctor` checks a port only if one is configured.
  const expected = CHECKS.map(({ id }) => id).filter((id) => id !== "port");
  expect(ids.filter((id) => id !== "login")).toEqual(expected);
});

interface Broken {
  readonly name: string;
  readonly breakIt: () => void | Promise<void>;
  readonly id: string;
  readonly level: Finding["level"];
  /** Part of the finding's text. */
  readonly says: string;
}

/** Faults repaired by the command of the finding. */
const BY_COMMAND: readonly Broken[] = [
  {
    name: "a Claude Code in PATH that is too old",
    breakIt: () => machine.claude(CLAUDE.replace(":-2.1.332", ":-2.1.100")),
    id: "claude",
    level: "error",
    says: "is version 2.1.100: 2.1.261 or newer is needed",
  },
  {
    name: "a missing login",
    breakIt: () => rmSync(at("logged-in")),
    id: "login",
    level: "error",
    says: "not logged in",
  },
  {
    name: "a state folder that others can write",
    breakIt: () => chmodSync(machine.stateFolder, 0o777),
    id: "state-folder",
    level: "error",
    says: "Other users can write",
  },
  {
    name: "a token that others can read",
    breakIt: () => writeFileSync(join(machine.stateFolder, "http-token"), "ccm_secret", { mode: 0o644 }),
    id: "state-folder",
    level: "error",
    says: "Other users can read",
  },
  {
    name: "a file in place of the state folder",
    breakIt: () => {
      rmSync(machine.stateFolder, { recursive: true });
      writeFileSync(machine.stateFolder, "");
    },
    id: "state-folder",
    level: "error",
    says: "is not a folder",
  },
  {
    name: "a folder that is not trusted",
    breakIt: () => writeFileSync(at("work", ".mcp.json"), "{}"),
    id: "trust",
    level: "warning",
    says: ".mcp.json",
  },
  {
    name: "a process of a dead server",
    breakIt: async () => {
      const store = join(machine.stateFolder, "store.db");
      const { value } = createProcessTag({ store, pid: 4_194_300, startedAt: "1" }, "a", 1);
      const child = spawn("sleep", ["600"], { env: { [TAG_VARIABLE]: value, PATH: "/usr/bin:/bin" } });
      started.push(child);
      await once(child, "spawn");
      await vi.waitFor(
        () => readFileSync(`/proc/${String(child.pid)}/environ`, "utf8").includes(value) || expect.fail(),
      );
    },
    id: "leftover-processes",
    level: "warning",
    says: "1 process of dead servers",
  },
];

it.each(BY_COMMAND)("`doctor` names $name, and the command repairs it", async ({ breakIt, id, level, says }) => {
  await breakIt();
  const found = await machine.onlyFault();
  expect(found).toMatchObject({ id, level });
  expect(found.text).toContain(says);
  machine.runFix(found);
  await vi.waitFor(async () => expect(await machine.faults()).toEqual([]));
});

/** Faults repaired by `--fix`. */
const BY_FIX: readonly Broken[] = [
  ...BY_COMMAND.filter(({ says }) => says.startsWith("Other users")),
  {
    name: "the socket of a daemon that has died",
    breakIt: async () => {
      const folder = join(machine.stateFolder, "run");
      await createPrivateFolder(folder);
      const path = join(folder, "gone.sock");
      const program = `require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
      await once(spawn(process.execPath, ["-e", program, path]), "exit");
      expect(statSync(path).isSocket()).toBe(true);
    },
    id: "stale-sockets",
    level: "warning",
    says: "gone",
  },
  {
    name: "a draft of a dead process",
    breakIt: () => {
      mkdirSync(at("cache", "claude-agents-mcp"), { recursive: true });
      writeFileSync(at("cache", "claude-agents-mcp", "claude-versions.json.4194300"), "");
    },
    id: "temporary-files",
    level: "warning",
    says: "claude-versions.json.4194300",
  },
];

it.each(BY_FIX)("`doctor` names $name, and `--fix` repairs it", async ({ breakIt, id, level, says }) => {
  await breakIt();
  const found = await machine.onlyFault();
  expect(found).toMatchObject({ id, level });
  expect(found.text).toContain(says);
  expect(await found.mend?.()).toMatch(/\.$/);
  expect(await machine.faults()).toEqual([]);
});

it("`doctor` names the folder of a former demo, and `--fix` leaves it, because a demo can be kept on request", async () => {
  mkdirSync(at("tmp", "claude-agents-mcp-demo-new"));
  mkdirSync(at("tmp", "claude-agents-mcp-demo-old", "project"), { recursive: true });
  execFileSync("touch", ["-d", "2 days ago", at("tmp", "claude-agents-mcp-demo-old")]);
  const temporary = async () =>
    (await examine(machine.toMachine(), () => undefined)).filter(({ id }) => id === "temporary-files");
  const [alone, ...others] = await temporary();
  expect(others).toEqual([]);
  expect(alone).toMatchObject({ level: "ok" });
  expect(alone?.text).toContain("claude-agents-mcp-demo-old");
  expect(alone?.text).not.toContain("demo-new");
  expect(alone?.mend).toBeUndefined();
  mkdirSync(at("cache", "claude-agents-mcp"), { recursive: true });
  writeFileSync(at("cache", "claude-agents-mcp", "claude-versions.json.4194300"), "");
  const [found] = await temporary();
  expect(await found?.mend?.()).toBe("1 stale temporary file removed.");
  expect(existsSync(at("tmp", "claude-agents-mcp-demo-old", "project"))).toBe(true);
  expect(await machine.faults()).toEqual([]);
});

it("`doctor` exits with the code of its checks, even if it was started with an IPC channel", async () => {
  const program = at("checks.cjs");
  writeFileSync(program, `process.send({ code: process.argv.includes("--checks-only") ? 1 : 7 });`);
  const { argv } = process;
  const channel = Object.getOwnPropertyDescriptor(process, "send");
  process.argv = [process.execPath, program];
  process.send = () => true;
  try {
    expect(await doctor([])).toBe(1);
  } finally {
    process.argv = argv;
    if (channel) Object.defineProperty(process, "send", channel);
    else delete process.send;
  }
});

describe("findings of `doctor`", () => {
  it("`doctor` names a Claude Code that does not answer --version within 0.5 s", async () => {
    machine.claude("#!/bin/sh\nsleep 600\n");
    const found = await machine.onlyFault();
    expect(found).toMatchObject({ id: "claude", level: "error" });
    expect(found.text).toContain("did not answer --version within 0.5 s");
  });

  it("`doctor` names a missing Claude Code, with the command that installs it", async () => {
    rmSync(at("bin", "claude"));
    const found = await machine.onlyFault();
    expect(found).toMatchObject({ id: "claude", level: "error", fix: "npm install -g @anthropic-ai/claude-code" });
    expect(found.text).toContain(at(".local", "bin", "claude"));
  });

  it("`doctor` warns of a key beside a login without showing the key; a key without a login is not a fault", async () => {
    machine.environment["ANTHROPIC_API_KEY"] = "sk-ant-very-secret";
    const found = await machine.onlyFault();
    expect(found).toMatchObject({ id: "login", level: "warning", fix: "unset ANTHROPIC_API_KEY" });
    expect(found.text).toContain("sessions are billed to ANTHROPIC_API_KEY");
    machine.typeFix(found);
    expect(await machine.faults()).toEqual([]);
    machine.environment["ANTHROPIC_API_KEY"] = "sk-ant-very-secret";
    rmSync(at("logged-in"));
    const all = await examine(machine.toMachine(), () => undefined);
    expect(all.find(({ id }) => id === "login")).toMatchObject({ level: "ok" });
    expect(JSON.stringify([found, ...all])).not.toContain("very-secret");
  });

  it("`doctor` names a Node that is older than the limit of package.json", async () => {
    const { engines }: { engines: { node: string } } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(engines.node).toBe(">=20.19");
    for (const nodeVersion of ["18.20.4", "20.18.9"]) {
      expect(await machine.onlyFault(machine.toMachine({ nodeVersion }))).toMatchObject({ id: "node", level: "error" });
    }
    for (const nodeVersion of ["20.19.0", "24.0.0"])
      expect(await machine.faults(machine.toMachine({ nodeVersion }))).toEqual([]);
  });

  it("`doctor` reports a full disk as an error, and one that soon is full as a warning", async () => {
    const freeBytes = (bytes: number) => ({ freeBytes: async () => Promise.resolve(bytes) });
    const found = await machine.onlyFault(machine.toMachine(freeBytes(1e6)));
    expect(found).toMatchObject({ id: "disk", level: "error" });
    // No files of this product would free enough.
    expect(found.fix).toBeUndefined();
    expect(found.text).toContain("Free space there.");
    const compiled = at("cache", "claude-agents-mcp", "compiled");
    mkdirSync(compiled, { recursive: true });
    writeFileSync(join(compiled, "a"), "");
    truncateSync(join(compiled, "a"), 60e6);
    expect((await machine.onlyFault(machine.toMachine(freeBytes(1e6)))).fix).toBe(`rm -r ${compiled}`);
    expect(await machine.onlyFault(machine.toMachine(freeBytes(2e8)))).toMatchObject({ level: "warning" });
  });

  it("`doctor` names a store on a network file system", async () => {
    const networkKindOf = async (folder: string) =>
      Promise.resolve(folder === machine.stateFolder ? "nfs4" : undefined);
    const found = await machine.onlyFault(machine.toMachine({ networkKindOf }));
    expect(found).toMatchObject({ id: "store", level: "error" });
    expect(found.text).toContain("nfs4");
  });

  it("`doctor` names a port that another program has, but not a port of this server", async () => {
    const port = async (body: object) => {
      const server = createServer((_, response) => response.end(JSON.stringify(body)));
      servers.push(server);
      await once(server.listen(0, "127.0.0.1"), "listening");
      const address = server.address();
      return `127.0.0.1:${String(typeof address === "object" ? address?.port : 0)}`;
    };
    const found = await machine.onlyFault(machine.toMachine({}, ["--http", await port({})]));
    expect(found).toMatchObject({ id: "port", level: "error" });
    expect(found.text).toContain("EADDRINUSE");
    const [, ...args] = found.fix?.split(" ") ?? [];
    expect(await machine.faults(machine.toMachine({}, args))).toEqual([]);
    const ours = await port({ status: "ok", version: "1", uptimeSeconds: 1 });
    expect(await machine.faults(machine.toMachine({}, ["--http", ours]))).toEqual([]);
  });

  it("`doctor` reports a missing sandbox as a fault only if a sandbox is required", async () => {
    const problem = "bwrap cannot be found in PATH. Install (Debian and Ubuntu: apt-get install bubblewrap).";
    const sandboxProblem = async () => Promise.resolve(problem);
    expect(await machine.faults(machine.toMachine({ sandboxProblem }))).toEqual([]);
    const required = await machine.onlyFault(machine.toMachine({ sandboxProblem }, ["--sandbox", "required"]));
    expect(required).toMatchObject({ id: "sandbox", level: "error", fix: "sudo apt-get install bubblewrap" });
  });
});

it("a check that hangs or fails is a finding, and a slow check is named", async () => {
  const slow: string[] = [];
  const never = new Promise<Finding[]>(() => undefined);
  const found = await examine(machine.toMachine(), (subject) => void slow.push(subject), [
    { id: "one", subject: "one", ms: 30, find: async () => never },
    { id: "two", subject: "two", ms: 30, find: async () => Promise.reject(new Error("broken")) },
  ]);
  expect(found.map(({ id, level }) => `${id} ${level}`)).toEqual(["one error", "two error"]);
  expect(found[0]?.text).toContain("did not end within 0.03 s");
  expect(slow).toEqual(["one"]);
});
