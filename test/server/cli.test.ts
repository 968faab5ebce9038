import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";

import { build } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { PrincipalTerms } from "../../src/config/principals.ts";
import { SETTINGS } from "../../src/config/schema.ts";
import type { Logger } from "../../src/engine/ports.ts";
import { createLogger } from "../../src/log/logger.ts";
import { createMasker } from "../../src/log/mask.ts";

/** Runs the built program without `CLAUDE_CODE_MCP_*` variables of the machine. */
function run(args: string[], { node = [], env = {} }: { node?: string[]; env?: Record<string, string> } = {}) {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("CLAUDE_CODE_MCP_"));
  const options = { encoding: "utf8", env: { ...Object.fromEntries(inherited), ...env }, input: "" } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...node, "dist/cli/main.js", ...args], options);
  return { status, stdout, stderr };
}

const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync("package.json", "utf8")));

describe("version", () => {
  it.each([[["--version"]], [["-V"]], [["version"]], [["serve", "--max-wait-ms", "5", "--version"]]])(
    "%j prints the version alone",
    (args) => {
      expect(run(args)).toEqual({ status: 0, stdout: `${version}\n`, stderr: "" });
    },
  );
});

describe("help", () => {
  it.each([[["--help"]], [["-h"]], [["help"]], [["help", "serve"]], [["serve", "--nonsense", "--help"]]])(
    "%j lists every flag in the section it belongs to, in lines of at most 100 columns",
    (args) => {
      const { status, stdout, stderr } = run(args);
      const lines = stdout.split("\n");
      const at = (begin: string) => lines.findIndex((line) => line.startsWith(begin));
      const [term, server, client] = [at("Terms of"), at("Settings of the server"), at("Settings of the client")];
      const ends = { term: server, server: client, client: lines.length };
      const shared = stdout.match(/^For .+$/gm)?.join(" ") ?? "";
      for (const { flag, meaning, of } of SETTINGS) {
        if (shared.includes(`--${flag}`)) continue;
        const line = lines.findIndex((each) => new RegExp(`^  --(\\[no-\\])?${flag} `).test(each));
        expect(line).toBeGreaterThan({ term, server, client }[of]);
        expect(line).toBeLessThan(ends[of]);
        const [, about = ""] = /^ {2}.{36} (.+)$/.exec(lines[line] ?? "") ?? [];
        expect(meaning.startsWith(about)).toBe(true);
        expect(about).toMatch(/\.$/);
      }
      expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    },
  );

  it("the help of serve has at most 60 lines, so that it fits on a screen", () => {
    expect(run(["help", "serve"]).stdout.split("\n").length).toBeLessThanOrEqual(60);
  });

  it.each(["demo", "token", "version"])("the help of %s has at most 11 lines", (command) => {
    const { status, stdout } = run(["help", command]);
    expect(stdout).toMatch(new RegExp(`^Usage: claude-agents-mcp ${command}`));
    expect(stdout.split("\n").length).toBeLessThan(12);
    expect(status).toBe(0);
    expect(run([command, "--help"]).stdout).toBe(stdout);
  });
});

describe("token", () => {
  const Made = z.object({ token: z.string(), sha256: z.string(), principals: z.object({ NAME: PrincipalTerms }) });

  it("token --json prints a new token each time, with the configuration for it", () => {
    const said = [run(["token", "--json"]), run(["token", "--json"])];
    const made = said.map(({ stdout }) => Made.parse(JSON.parse(stdout)));
    for (const { principals, sha256, token } of made) {
      expect(token).toMatch(/^ccm_[\w-]{43}$/);
      expect(sha256).toBe(createHash("sha256").update(token).digest("hex"));
      expect(principals.NAME.tokenSha256).toBe(sha256);
    }
    expect(made[0]?.token).not.toBe(made[1]?.token);
    expect(said[0]).toMatchObject({ status: 0, stderr: "" });
  });

  it("token prints the token, its hash and its configuration in words for people", () => {
    const { status, stdout, stderr } = run(["token"]);
    const [, token = "", sha256 = ""] = /^Token: +(\S+)\nSHA-256: +(\S+)\n/.exec(stdout) ?? [];
    expect(sha256).toBe(createHash("sha256").update(token).digest("hex"));
    expect(stdout).toContain(`"tokenSha256": "${sha256}"`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});

describe("a command line that cannot be used", () => {
  it.each<[string[], string]>([
    [["srve"], 'Unknown command "srve". Did you mean serve? "claude-agents-mcp help" lists all commands.'],
    [["start"], 'Unknown command "start". Did you mean serve? "claude-agents-mcp help" lists all commands.'],
    [["help", "demos"], 'Unknown command "demos". Did you mean demo? "claude-agents-mcp help" lists all commands.'],
    [["srve", "--help"], 'Unknown command "srve". Did you mean serve? "claude-agents-mcp help" lists all commands.'],
    [
      ["--log-levle", "warn"],
      'Unknown flag --log-levle. Did you mean --log-level? "claude-agents-mcp help" lists all flags.',
    ],
    [["token", "--name"], "token: Unknown option '--name'. It takes --json."],
    [["serve", "--sandbox=no"], '--sandbox is "no": must be one of off, required.'],
    [
      ["serve", "--reaper=always"],
      "--reaper is no longer a setting: the kernel and the reaper both end Claude Code, wherever the system can. Leave it out.",
    ],
    [["--allow-bypass", "serve"], 'Unexpected argument "serve": only flags go here, as --flag value or --flag=value.'],
  ])("%j exits with 2, one line on stderr and nothing on stdout", (args, line) => {
    expect(run(args)).toEqual({ status: 2, stdout: "", stderr: `claude-agents-mcp: ${line}\n` });
  });

  const QUERY = { CLAUDE_CODE_MCP_TOOLSETS: "query", CLAUDE_CODE_MCP_DAEMON: "off" };
  it.each<[Record<string, string>, string]>([
    [{ CLAUDE_CODE_MCP_UNATTENDED: "loud" }, 'CLAUDE_CODE_MCP_UNATTENDED is "loud": must be one of wait, deny.'],
    [
      { ...QUERY, CLAUDE_CODE_DEFAULT_CWD: "/none" },
      'CLAUDE_CODE_DEFAULT_CWD is "/none": there is no such folder. Name an existing one.',
    ],
    [
      { CLAUDE_CODE_MCP_HTTP: "0.0.0.0:0", CLAUDE_CODE_MCP_AUTH: "0" },
      "CLAUDE_CODE_MCP_AUTH on 0.0.0.0 would let anyone who can reach it run commands here. Leave out CLAUDE_CODE_MCP_AUTH, or listen on 127.0.0.1.",
    ],
  ])("the error for a wrong variable names the variable: %j", (env, line) => {
    expect(run([], { env })).toEqual({ status: 2, stdout: "", stderr: `claude-agents-mcp: ${line}\n` });
  });

  it("a wrong key of the user's file is named by servers, the console, the sessions command and doctor", () => {
    const folder = mkdtempSync(join(tmpdir(), "ccm-user-"));
    const file = join(folder, "claude-agents-mcp", "config.json");
    mkdirSync(dirname(file));
    writeFileSync(file, '{"maxLive":0}');
    const problem = `"maxLive" in ${file} is 0: must be a whole number from 1 to 10000.`;
    for (const args of [["--daemon", "off"], ["daemon", "run"], ["console"], ["sessions", "list"]]) {
      const { status, stderr } = run(args, { env: { XDG_CONFIG_HOME: folder } });
      expect([args, status, stderr]).toEqual([args, 2, `claude-agents-mcp: ${problem}\n`]);
    }
    expect(run(["doctor"], { env: { XDG_CONFIG_HOME: folder } }).stdout).toContain(problem);
    rmSync(folder, { recursive: true });
  });
});

describe("an old Node", () => {
  it.each<[string, number]>([
    ["18.20.8", 1],
    ["20.18.3", 1],
    ["20.19.0", 0],
    ["22.0.0", 0],
  ])("on Node %s the program exits with %j", (node, status) => {
    const pretend = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${node}" } })`;
    const result = run(["--version"], { node: ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`] });
    const line = `claude-agents-mcp needs Node 20.19 or newer; this is ${node} (${process.execPath}).\n`;
    expect(result).toEqual(
      status === 0 ? { status, stdout: `${version}\n`, stderr: "" } : { status, stdout: "", stderr: line },
    );
  });

  it("the program checks the version of Node before it imports any module but Node's own", () => {
    const imported = [...readFileSync("dist/cli/main.js", "utf8").matchAll(/\bfrom ?["'](.+?)["']/g)];
    const names = imported.map(([, name]) => name);
    expect(names).toContain("node:path");
    expect(names.filter((name) => !name?.startsWith("node:"))).toEqual([]);
  });
});

describe("the logger", () => {
  // Bundles the logger separately, because no entry of the program exports the logger, and inside the project to find pino.
  const folder = resolve("test-output", "logger");
  beforeAll(async () => {
    const input = { logger: "src/log/logger.ts", mask: "src/log/mask.ts" };
    await build({ input, platform: "node", external: ["pino"], output: { dir: folder } });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const prelude = (level: string) => `
    import { createRequire } from "node:module";
    import { createLogger } from "./test-output/logger/logger.js";
    import { createMasker } from "./test-output/logger/mask.js";
    const logger = createLogger({ level: "${level}", masker: createMasker({ A_TOKEN: "hunter22" }) });
    const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((path) => /[\\\\/]pino[\\\\/]/.test(path));
  `;
  const script = (level: string, body: string) => ["--input-type=module", "-e", prelude(level) + body];

  it("the logger implements the port of the engine", () => {
    const logger: Logger = createLogger({ level: "silent", masker: createMasker({}) });
    expect(() => logger.error("nothing", { a: 1 })).not.toThrow();
  });

  it("the logger writes every line at or above its level, in order and masked, though the process exits at once", () => {
    const body = `
      logger.debug("no");
      for (let i = 0; i < 100; i++) logger[["info", "warn", "error"][i % 3]]("line " + i + " hunter22", { pid: i, deep: ["hunter22"] });
      process.exit(0);
    `;
    const { stdout, stderr } = spawnSync(process.execPath, script("info", body), { encoding: "utf8" });
    const lines = stderr
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map((line) => line["msg"])).toEqual(
      Array.from({ length: 100 }, (_, i) => `line ${String(i)} [masked]`),
    );
    expect(lines[4]).toMatchObject({
      level: "warn",
      pid: 4,
      deep: ["[masked]"],
      time: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(stdout).toBe("");
  });

  it("the logger loads pino at its first line, and never when silent", () => {
    const body = `
      logger.debug("no");
      console.log(loaded());
      logger.error("now");
      console.log(loaded());
    `;
    expect(spawnSync(process.execPath, script("info", body), { encoding: "utf8" }).stdout).toBe("false\ntrue\n");
    const silent = spawnSync(process.execPath, script("silent", body), { encoding: "utf8" });
    expect(silent).toMatchObject({ stdout: "false\nfalse\n", stderr: "", status: 0 });
  });

  it("a client that does not read does not hold up the logger, and gets the lines when it reads", async () => {
    const body = `
      for (let i = 0; i < 500; i++) logger.info("line " + i, { pad: "x".repeat(1000) });
      console.log("not held up");
      process.stdin.resume();
    `;
    const child = spawn(process.execPath, script("info", body), { stdio: "pipe" });
    expect(String(await new Promise((done) => child.stdout.once("data", done)))).toBe("not held up\n");
    let written = "";
    for await (const chunk of child.stderr.setEncoding("utf8")) {
      written += String(chunk);
      if (written.includes("line 499")) child.stdin.end();
    }
    expect(written.trimEnd().split("\n")).toHaveLength(500);
  });

  it.skipIf(!existsSync("/dev/full"))("a full stderr never stops the server", () => {
    const full = openSync("/dev/full", "w");
    const body = `logger.error("a"); setTimeout(() => { logger.error("b"); console.log("alive"); }, 200);`;
    const result = spawnSync(process.execPath, script("info", body), {
      encoding: "utf8",
      stdio: ["ignore", "pipe", full],
    });
    closeSync(full);
    expect(result).toMatchObject({ stdout: "alive\n", status: 0 });
  });

  it("a closed stderr never stops the server", async () => {
    const body = `
      logger.error("a");
      process.stdin.on("end", () => { logger.error("b"); logger.error("c"); setTimeout(() => console.log("alive"), 200); }).resume();
    `;
    const child = spawn(process.execPath, script("info", body), { stdio: "pipe" });
    await new Promise((done) => child.stderr.once("data", done));
    child.stderr.destroy();
    child.stdin.end();
    expect(await text(child.stdout)).toBe("alive\n");
  });
});
