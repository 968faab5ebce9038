import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize } from "node:path";
import { Registry } from "prom-client";
import { describe, expect, it, vi } from "vitest";

import { sessions } from "../../src/cli/sessions.ts";
import { loadConfig, unknownVariables } from "../../src/config/load.ts";
import { PrincipalTerms } from "../../src/config/principals.ts";
import { SETTINGS } from "../../src/config/schema.ts";
import { serverSettings } from "../../src/config/server-settings.ts";
import { readPackage } from "../../src/config/version.ts";
import { instruments } from "../../src/http/metrics/instruments.ts";
import { stateFolder } from "../../src/config/state-folder.ts";
import { blocksOf, commandsOf, DOCUMENTS, wordsOf } from "../kit/documents.ts";

/** Parses examples in documents (files, variables, commands) with the code of the server. */

const { name } = readPackage();
const KEYS = ["bounds", ...SETTINGS.map(({ key }) => key)];
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Replaces placeholders of an example by plausible values. */
function filled(text: string): string {
  return text.replaceAll(/<SHA-256[^>]*>/g, (what) => createHash("sha256").update(`ccm_${what}`).digest("hex"));
}

const objects = blocksOf("json").map(({ file, text }) => ({ file, text, value: JSON.parse(text) as unknown }));

describe("a configuration file in a document", () => {
  const files = objects.filter(({ value }) => isRecord(value) && Object.keys(value).every((key) => KEYS.includes(key)));

  it.each(files)("the configuration file in $file is valid for the server", ({ text, value }) => {
    for (const argv of [[], ["--http"]]) {
      const readFile = () => filled(text);
      const isUsers = isRecord(value) && "bounds" in value;
      const env = { CLAUDE_CODE_MCP_CONFIG: "/settings.json" };
      const read = () => (isUsers ? serverSettings({ argv, env: {}, readFile }) : loadConfig({ argv, env, readFile }));
      expect(read).not.toThrow();
    }
  });

  it("docs/http.md names every key of a principal in its table and in an example", () => {
    const places = ["configuration", "configuration", "http", "http", "limits"];
    expect(files.map(({ file }) => file)).toEqual(places.map((place) => `docs/${place}.md`));
    const { text } = DOCUMENTS.find(({ file }) => file === "docs/http.md") ?? { text: "" };
    const keys = Object.keys(PrincipalTerms.unwrap().shape);
    expect(keys.filter((key) => !text.includes(`\n| \`${key}\` `))).toEqual([]);
    expect(keys.filter((key) => !files.some((each) => each.text.includes(`"${key}"`)))).toEqual([]);
  });
});

it("each client entry in a document starts the server with valid flags and variables", () => {
  const entries = objects.flatMap(({ value }) =>
    isRecord(value) && isRecord(value["mcpServers"]) ? Object.values(value["mcpServers"]).filter(isRecord) : [],
  );
  const started = entries.filter(({ command }) => command !== undefined);
  expect(started.length).toBeGreaterThan(3);
  for (const { args = [], command, env = {} } of started as { args?: string[]; command: string; env?: object }[]) {
    const words = [command, ...args];
    const at = words.findIndex((word) => word === name || word.endsWith("dist/cli/main.js"));
    expect(at).toBeGreaterThanOrEqual(0);
    loadConfig({ argv: words.slice(at + 1), env: { ...env } });
    expect(unknownVariables({ ...env })).toEqual([]);
  }
});

describe("a command in a document", () => {
  const serving = commandsOf(name)
    .map(({ file, text }) => ({ file, text, words: wordsOf(text).slice(1) }))
    .filter(({ words: [first = ""] }) => first === "serve" || (first.startsWith("--") && first !== "--help"));

  it.each(serving.filter(({ words }) => !words.includes("--version") && !words.includes("work")))(
    "a command in a document is valid: $text",
    ({ words }) => {
      const argv = words[0] === "serve" ? words.slice(1) : words;
      expect(() => loadConfig({ argv, env: { CLAUDE_CODE_MCP_NOTIFY_SECRET: "x" } })).not.toThrow();
    },
  );

  it("each command on sessions in a document exists, with its flags", async () => {
    const folder = mkdtempSync(join(tmpdir(), "ccm-docs-"));
    vi.stubEnv("CLAUDE_CODE_MCP_STORE", join(folder, "store.db"));
    const silent = [
      vi.spyOn(process.stdout, "write").mockReturnValue(true),
      vi.spyOn(console, "error").mockReturnValue(undefined),
    ];
    const commands = [...new Set(commandsOf(name).map(({ text }) => text))]
      .map((text) => wordsOf(text).slice(1))
      .filter(([first, verb]) => first === "sessions" && verb !== undefined && verb !== "export");
    const codes = await Promise.all(
      // A missing session gives 1; an invalid command line throws.
      commands.map(async ([, ...words]) => sessions(words).catch((error: unknown) => [words.join(" "), String(error)])),
    );
    for (const spy of silent) spy.mockRestore();
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
    expect(commands.length).toBeGreaterThan(8);
    expect(codes.filter((code) => code !== 0 && code !== 1)).toEqual([]);
  });

  it("each command of npm or node in a document exists", () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
    const missing = commandsOf("npm").filter(({ text }) => {
      const [, verb = "", script = ""] = wordsOf(text).filter((word) => !/^-\w$/.test(word));
      return verb === "run" && scripts[script] === undefined;
    });
    expect(missing).toEqual([]);
    const files = commandsOf("node").map(({ text }) => wordsOf(text)[1] ?? "");
    expect(files.filter((file) => file.startsWith("scripts/") && !existsSync(file))).toEqual([]);
  });
});

it("a variable of the server that a document names has an effect", () => {
  const ofAll = DOCUMENTS.flatMap(({ text }) => text.match(/\bCLAUDE_CODE_MCP_[A-Z]+(?:_[A-Z]+)*\b/g) ?? []);
  expect(unknownVariables(Object.fromEntries(ofAll.map((variable) => [variable, ""])))).toEqual([]);
});

it("a flag that a document names belongs to the server or to a listed program", () => {
  const OF_COMMANDS =
    "all cwd daemon-idle-ms fix flag follow force format interrupt json keep keep-approvals limit no-wait live no-files older-than output port print ready-fd scope since status text version yes";
  const OF_OTHERS =
    "allow-http allow-tool archive auto-approve concurrency cpu-prof env max-semi-space-size notify- omit preserve-env project rm rounds";
  const ours = new Set([...SETTINGS.flatMap(({ flag }) => [flag, `no-${flag}`]), ...OF_COMMANDS.split(" ")]);
  const named = DOCUMENTS.flatMap(({ text }) =>
    [...text.matchAll(/`--([a-z-]+)[^`\n]*`/g)].map(([, flag = ""]) => flag),
  );
  const others = new Set(OF_OTHERS.split(" "));
  expect([...new Set(named)].filter((flag) => !ours.has(flag) && !others.has(flag))).toEqual([]);
});

it("a metric that a document names is measured", async () => {
  const registry = new Registry();
  instruments(registry);
  const measured = (await registry.getMetricsAsJSON()).map((metric) => metric.name);
  const named = DOCUMENTS.flatMap(({ text }) => text.match(/\bclaude_code_mcp_[a-z_]+/g) ?? []);
  const bare = named.map((metric) => metric.replace(/_(?:bucket|count|sum)$/, ""));
  expect([...new Set(bare)].filter((metric) => !measured.includes(metric))).toEqual([]);
});

describe("docs/installation.md", () => {
  const { text } = DOCUMENTS.find(({ file }) => file === "docs/installation.md") ?? { text: "" };

  it.each<[NodeJS.Platform, Record<string, string>, string, string]>([
    ["linux", { HOME: "/home/me" }, "/home/me", "~"],
    ["linux", { HOME: "/home/me", XDG_STATE_HOME: "/state" }, "/state", "$XDG_STATE_HOME"],
    ["darwin", { HOME: "/Users/me" }, "/Users/me", "~"],
    ["win32", { LOCALAPPDATA: String.raw`C:\local` }, String.raw`C:\local`, "%LOCALAPPDATA%"],
    ["win32", { USERPROFILE: String.raw`C:\me` }, String.raw`C:\me`, "%USERPROFILE%"],
  ])("docs/installation.md names the actual state folder of %s", (platform, env, home, sign) => {
    const folder = stateFolder(env, platform);
    expect(text).toContain(`\`${folder.replace(home, () => sign)}\``);
  });
});

describe("docs/troubleshooting.md", () => {
  /** Messages of Claude Code, the system or a client. */
  const FOREIGN = ["Not logged in", "EADDRINUSE", "spawn npx ENOENT"];
  const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const knownTexts = [...sources.map((file) => readFileSync(join("src", file), "utf8")), ...FOREIGN].join("\n");
  const { text } = DOCUMENTS.find(({ file }) => file === "docs/troubleshooting.md") ?? { text: "" };

  it("docs/troubleshooting.md quotes existing messages", () => {
    const first = [...text.matchAll(/^\| ([^|]+?) *\|/gm)].map(([, cell = ""]) => cell);
    const parts = first.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, code = ""]) => code.split("…")));
    const sought = parts.map((part) => part.trim().replace(/^--http: /, ""));
    expect(sought.length).toBeGreaterThan(25);
    expect(sought.filter((part) => part !== "" && !knownTexts.includes(part))).toEqual([]);
  });
});

it("a link in a document leads to an existing file and to an existing heading", () => {
  const slug = (heading: string) =>
    heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
  const headings = new Map(
    DOCUMENTS.map(({ file, text }) => [
      file,
      [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => slug(heading)),
    ]),
  );
  const links = DOCUMENTS.flatMap(({ file, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link = ""]) => ({ file, link })),
  );
  const dead = links.filter(({ file, link }) => {
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? file : normalize(join(dirname(file), path));
    if (!existsSync(target)) return true;
    return anchor !== undefined && headings.get(target)?.includes(anchor) !== true;
  });
  expect(dead).toEqual([]);
});
