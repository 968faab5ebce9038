import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { install, uninstall } from "../../src/cli/install.ts";
import { PRODUCT } from "../../src/domain/names.ts";
import { CLIENTS } from "../../src/install/clients.ts";
import { diffText } from "../../src/install/diff.ts";
import { INSTALLED, invocationOf, isNpx, isPortable, PUBLISHED, type Running } from "../../src/install/invocation.ts";
import type { Places } from "../../src/install/places.ts";
import { entryConfig, longestCallMs, mayGiveUp, timeoutEntry } from "../../src/install/server-args.ts";

/** The table of clients on each system, and the command written to a client. */

const longest = (argv: string[]) => longestCallMs(entryConfig({ argv, env: { HOME: "/home/me" } }));

const clientOf = (id: string) => CLIENTS.find((client) => client.id === id)!;

const SYSTEMS: Readonly<Record<string, Places>> = {
  linux: { platform: "linux", env: {}, home: "/home/me", project: "/project", exists: () => false },
  "linux, moved": {
    platform: "linux",
    env: {
      CLAUDE_CONFIG_DIR: "/x/claude",
      CODEX_HOME: "/x/codex",
      COPILOT_HOME: "/x/copilot",
      GEMINI_CLI_HOME: "/x",
      XDG_CONFIG_HOME: "/x/config",
    },
    home: "/home/me",
    project: "/project",
    exists: (path) => path.endsWith(".jsonc"),
  },
  macOS: { platform: "darwin", env: {}, home: "/Users/me", project: "/project", exists: () => false },
  Windows: {
    platform: "win32",
    env: { APPDATA: "C:\\Users\\me\\AppData\\Roaming", LOCALAPPDATA: "C:\\Users\\me\\AppData\\Local" },
    home: "C:\\Users\\me",
    project: "D:\\work",
    exists: () => false,
  },
  "Windows, packaged applications": {
    platform: "win32",
    env: {},
    home: "C:\\Users\\me",
    project: "D:\\work",
    exists: (path) => path.includes("Packages"),
  },
};

describe("the file of each client", () => {
  it.each(Object.entries(SYSTEMS))("every client has its files on %s", (_, places) => {
    const files = CLIENTS.map(({ files: { project, user }, id }) => [id, user?.(places), project?.(places)]);
    expect(files.map((row) => row.map((cell) => cell ?? "-").join("  ")).join("\n")).toMatchSnapshot();
  });
});

/** Folders as npm makes them, with links on PATH. */
let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "invocation-")));
  for (const folder of ["bin", "clone/dist/cli", "cache/_npx/0af1/node_modules/.bin"]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  writeFileSync(join(root, "clone/dist/cli/main.js"), "");
  writeFileSync(join(root, "node-22"), "");
  writeFileSync(join(root, "server.tgz"), "");
  symlinkSync(join(root, "clone/dist/cli/main.js"), join(root, "bin/claude-agents-mcp"));
  symlinkSync(join(root, "node-22"), join(root, "bin/node"));
});
afterAll(() => rmSync(root, { recursive: true }));

function running(script: string, more: Partial<Running> = {}): Running {
  const env = { PATH: join(root, "bin") };
  const execPath = join(root, "node-22");
  return { platform: "linux", env, execPath, script: join(root, script), cwd: root, shared: false, ...more };
}

const RUNNER = "cache/_npx/0af1/node_modules/.bin/claude-agents-mcp";

function npxAskedFor(...packages: string[]): void {
  writeFileSync(join(root, "cache/_npx/0af1/package.json"), JSON.stringify({ _npx: { packages } }));
}

describe("the command of an entry", () => {
  it("an entry for a clone starts node as PATH has it, with the script of the clone", async () => {
    expect(await invocationOf(running("clone/dist/cli/main.js"), ["--toolsets", "all"])).toEqual({
      command: join(root, "bin/node"),
      args: [join(root, "clone/dist/cli/main.js"), "--toolsets", "all"],
    });
    const other = running("clone/dist/cli/main.js", { execPath: "/opt/node/bin/node" });
    expect((await invocationOf(other, [])).command).toBe("/opt/node/bin/node");
  });

  it("an entry for a global or linked installation names the program's link, which an upgrade keeps", async () => {
    const args = [join(root, "bin/claude-agents-mcp")];
    expect(await invocationOf(running("bin/claude-agents-mcp"), [])).toEqual({ command: join(root, "bin/node"), args });
  });

  it("an entry in a shared file has the program's name alone, if the name starts this installation", async () => {
    const shared = { shared: true };
    const linked = await invocationOf(running("clone/dist/cli/main.js", shared), []);
    expect(linked).toEqual({ command: "claude-agents-mcp", args: [] });
    expect(isPortable(linked)).toBe(true);
    const unlinked = await invocationOf(running("clone/dist/cli/main.js", { ...shared, env: {} }), []);
    expect(isPortable(unlinked)).toBe(false);
  });

  it.each([
    ["claude-agents-mcp", "claude-agents-mcp"],
    ["claude-agents-mcp@0.1.0", "claude-agents-mcp@0.1.0"],
    ["github:me/fork", "github:me/fork"],
    ["./server.tgz", "ROOT/server.tgz"],
  ])("an entry made through npx starts npx with the requested package: %s", async (spec, written) => {
    npxAskedFor(spec);
    const args = ["-y", written.replace("ROOT", root), "--store", "memory:"];
    expect(await invocationOf(running(RUNNER), ["--store", "memory:"])).toEqual({ command: "npx", args });
  });

  it("an entry made through npx has the published name if the requested package is unknown", async () => {
    npxAskedFor("one", "two");
    expect(await invocationOf(running(RUNNER), [])).toEqual(PUBLISHED);
    expect([PUBLISHED, INSTALLED].map(isNpx)).toEqual([true, false]);
    rmSync(join(root, "cache/_npx/0af1/package.json"));
    expect(await invocationOf(running(RUNNER), [])).toEqual(PUBLISHED);
  });

  it("on Windows, an entry starts a script of npm with cmd", async () => {
    const windows = { platform: "win32", env: {}, execPath: "C:\\node\\node.exe", cwd: "C:\\", shared: false } as const;
    const npx =
      "C:\\Users\\me\\AppData\\Local\\npm-cache\\_npx\\0af1\\node_modules\\claude-agents-mcp\\dist\\cli\\main.js";
    expect(isNpx(await invocationOf({ ...windows, script: npx }, []))).toBe(true);
    expect(await invocationOf({ ...windows, script: npx }, [])).toEqual({
      command: "cmd",
      args: ["/c", "npx", "-y", "claude-agents-mcp"],
    });
    const own = await invocationOf({ ...windows, script: "C:\\clone\\dist\\cli\\main.js" }, []);
    expect(own).toEqual({ command: "C:\\node\\node.exe", args: ["C:\\clone\\dist\\cli\\main.js"] });
    expect(isPortable(own)).toBe(false);
  });
});

describe("flags of the server in an entry", () => {
  it("server flags in an entry set the client's timeout if calls can take longer than its default", () => {
    const [codex, gemini] = [clientOf("codex"), clientOf("gemini")];
    const query = longest(["--toolsets", "agent,query"]);
    expect(query).toBe(300_000);
    expect(timeoutEntry(codex, query)).toEqual({ tool_timeout_sec: 330 });
    expect(timeoutEntry(gemini, query)).toEqual({});
    expect(timeoutEntry(codex, longest(["--toolsets", "query", "--query", '{"maxExecutionMs":50000}']))).toEqual({});
    expect(timeoutEntry(gemini, longest(["--max-wait-ms", "900000"]))).toEqual({ timeout: 930_000 });
    expect(timeoutEntry(codex, longest([]))).toEqual({});
  });

  it("`mayGiveUp` is true for clients that may give up before the longest call ends", () => {
    const chat = longest(["--toolsets", "all"]);
    const ids = CLIENTS.filter((client) => mayGiveUp(client, chat)).map(({ id }) => id);
    expect(ids).toEqual(["claude-desktop", "cursor", "vscode", "windsurf", "zed", "copilot-cli"]);
    expect(CLIENTS.filter((client) => mayGiveUp(client, longest([])))).toEqual([]);
  });

  it.each([
    [["--alow-dir", "/srv"], "Did you mean --allow-dir?"],
    [["--allow-dir", "src"], "--allow-dir is a relative path"],
    // `any` is a keyword only in a file.
    [["--allow-dir", "any"], "--allow-dir is a relative path"],
    [["--store=store.db"], "--store is a relative path"],
    [["--http"], "a server over HTTP is started by you"],
    [["--daemon", "a/b"], "--daemon"],
    [["--max-live", "3"], "--max-live belongs to the server, which has other clients, too."],
    [
      ["--max-live", "3", "--spares=0"],
      '--max-live, --spares belong to the server, which has other clients, too. Set "maxLive", "spares" in ',
    ],
    [["--keep-ms", "3"], "--keep-ms is no longer a setting"],
  ])("server flags in an entry are refused as the server would refuse them: %j", (args, message) => {
    expect(() => longest(args)).toThrow(message);
  });

  it("server flags in an entry may name a daemon, a folder and a store, and server settings without a daemon", () => {
    expect(longest(["--daemon", "off", "--max-live", "3"])).toBe(45_000);
    expect(longest(["--daemon", "main"])).toBe(45_000);
    expect(longest(["--allow-dir", "~/src", "--allow-dir", "/srv", "--store", "memory:"])).toBe(45_000);
  });
});

/** Names typed by people for the ids of the table. */
const MEANT = {
  claude: "claude-code or claude-desktop",
  "Claude Code": "claude-code",
  claude_code: "claude-code",
  "claude-app": "claude-desktop",
  "codex-cli": "codex",
  "openai-codex": "codex",
  "cursor-agent": "cursor",
  "vs-code": "vscode",
  code: "vscode",
  "visual-studio-code": "vscode",
  "gemini-cli": "gemini",
  "google-gemini": "gemini",
  "opencode-ai": "opencode",
  codeium: "windsurf",
  "zed-editor": "zed",
  copilot: "copilot-cli",
  "github-copilot": "copilot-cli",
};

describe("command lines", () => {
  it.each([
    [["curser"], "Did you mean cursor?"],
    [["zed", "--scope", "all"], "must be user or project"],
    [["windsurf", "--scope", "project"], "Windsurf has no --scope project"],
    [["cursor", "codex"], 'unexpected argument "codex"'],
    [["cursor", "--", "--alow-dir", "/srv"], "Did you mean --allow-dir?"],
    [["cursor", "--alow-dir", "/srv"], "It takes --scope, --host, --json, --yes, --print, a client, and flags"],
    [["cursor", "--pritn"], "Did you mean --print?"],
    [["--allow-dir=/srv", "cursor"], "behind --, as in `claude-agents-mcp install cursor -- --allow-dir=/srv`"],
    [["cursor", "--no-allow-bypass"], "install: --no-allow-bypass is for the server"],
    [["--host", "gpu=ssh:gpu"], "install --host needs a client"],
    [["cursor", "--host", "gpu=ssh:-l"], '"-l" cannot be a destination of ssh'],
    [["--json=1"], "It takes --scope, --host, --json, --yes, --print, a client, and flags for the server behind --."],
  ])("`install` refuses the command line %j", async (argv, message) => {
    await expect(install(argv)).rejects.toThrow(message);
  });

  it.each(Object.entries(MEANT))(
    "`install` and `uninstall` suggest the client that is meant by %s",
    async (word, meant) => {
      for (const command of [install, uninstall]) {
        await expect(command([word])).rejects.toThrow(`unknown client "${word}". Did you mean ${meant}? Known are `);
      }
    },
  );

  it.each([
    [[], "uninstall needs a client: claude-code, "],
    [["cursor", "--print"], "Unknown option '--print'"],
    [["cursor", "--", "--toolsets", "all"], "takes no flags for the server"],
  ])("`uninstall` refuses the command line %j", async (argv, message) => {
    await expect(uninstall(argv)).rejects.toThrow(message);
  });
});

describe("install links", () => {
  it("the install link of Cursor carries the entry of the client table", () => {
    const { entry, link } = clientOf("cursor");
    const url = new URL(link!(entry(PUBLISHED), PRODUCT));
    expect(url.origin + url.pathname).toBe("https://cursor.com/en/install-mcp");
    expect(url.searchParams.get("name")).toBe(PRODUCT);
    const config = Buffer.from(url.searchParams.get("config")!, "base64").toString();
    expect(JSON.parse(config)).toEqual(entry(PUBLISHED));
  });

  it("the install link of VS Code carries the name and the entry of the client table", () => {
    const { entry, link } = clientOf("vscode");
    const url = new URL(link!(entry(PUBLISHED), PRODUCT));
    expect(url.origin + url.pathname).toBe("https://vscode.dev/redirect");
    const target = new URL(url.searchParams.get("url")!);
    expect(target.protocol + target.pathname).toBe("vscode:mcp/install");
    const content: unknown = JSON.parse(decodeURIComponent(target.search.slice(1)));
    expect(content).toEqual({ name: "claude-agents-mcp", ...entry(PUBLISHED) });
  });

  it("README has the install links of the client table", () => {
    const readme = readFileSync("README.md", "utf8");
    const links = CLIENTS.flatMap(({ entry, link }) => link?.(entry(PUBLISHED), PRODUCT) ?? []);
    expect(links).not.toEqual([]);
    for (const link of links) expect(readme).toContain(`](${link})`);
  });
});

describe("the diff of a change", () => {
  const show = (before: string, after: string) => diffText({ before, after, mask: (text) => text });

  it("the diff of a change has one line of context and masks values of keys", () => {
    const before = '{\n  "far": 1,\n  "API_KEY": "sk-1",\n  "a": 1\n}\n';
    const after = '{\n  "far": 1,\n  "API_KEY": "sk-1",\n  "a": 1,\n  "b": 2\n}\n';
    expect(show(before, after)).toBe('@@ line 3 @@\n   "API_KEY": "[masked]",\n-  "a": 1\n+  "a": 1,\n+  "b": 2\n }\n');
  });

  it("the diff of a long line is short and has no control characters", () => {
    const start = `{"TOKEN":"${"s".repeat(500)}","a":"${"x".repeat(500)}","b":{}`;
    const end = `,"z":"${"y".repeat(500)}"}`;
    const shown = show(start + end, `${start}, "ours": "\u001B"${end}`);
    expect(Math.max(...shown.split("\n").map((line) => line.length))).toBeLessThan(160);
    expect(shown).toMatch(/^\+\.\.\.x+","b":\{\}, "ours": "\\u001b","z":"y+\.\.\.$/m);
    expect(shown).not.toContain("ss");
  });
});
