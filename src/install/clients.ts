import { applicationData, folderOf, joined, xdgConfig, type Places } from "./places.ts";
import type { Invocation } from "./invocation.ts";
import type { Entry } from "./format.ts";
import { PRODUCT } from "../domain/names.ts";

/** The clients whose configuration `install` writes: which file, where in it, and what. docs/clients.md has the reasons. */

export type Scope = "user" | "project";

export interface Client {
  /** On the command line, and as the file in `examples/clients`. */
  readonly id: string;
  readonly title: string;
  /** Further names that people type for it, beside the title and the program. */
  readonly aliases: readonly string[];
  /** Its program on PATH; undefined for one that has none. */
  readonly program?: string;
  readonly format: "json" | "toml";
  /** The name of the table of servers. */
  readonly table: string;
  readonly files: Readonly<Partial<Record<Scope, (places: Places) => string>>>;
  readonly entry: (invocation: Invocation) => Entry;
  /** How a call that takes longer than `defaultMs` is allowed; undefined where nothing is known, or needed. */
  readonly timeout?: { readonly key: string; readonly unitMs: number; readonly defaultMs: number };
  /** Calls of any length return; undefined where a timeout is known, or may exist. */
  readonly unlimited?: true;
  /** Opened in a browser, it makes the client add this entry after a question. */
  readonly link?: (entry: Entry) => string;
  /** Ends `npx` in the middle of an installation, whose lock then delays every `npx` for a minute: wants an installed package. */
  readonly breaksNpx?: true;
  /** What a new file has besides. */
  readonly head?: Readonly<Record<string, string>>;
}

const plain = ({ args, command }: Invocation): Entry => ({ command, args });
const typed = (type: string) => (invocation: Invocation) => ({ type, ...plain(invocation) });

const home =
  (...parts: string[]) =>
  (places: Places) =>
    joined(places, places.home, ...parts);
const project =
  (...parts: string[]) =>
  (places: Places) =>
    joined(places, places.project, ...parts);
const data =
  (...parts: string[]) =>
  (places: Places) =>
    joined(places, applicationData(places), ...parts);

/** In the folder that a variable names, else in one of the home folder. */
const moved =
  (variable: string, folder: readonly string[], ...parts: string[]) =>
  (places: Places) =>
    joined(places, folderOf(places, variable) ?? joined(places, places.home, ...folder), ...parts);

export const CLIENTS: readonly Client[] = [
  {
    id: "claude-code",
    title: "Claude Code",
    aliases: ["claude cli"],
    program: "claude",
    format: "json",
    table: "mcpServers",
    files: { user: moved("CLAUDE_CONFIG_DIR", [], ".claude.json"), project: project(".mcp.json") },
    entry: typed("stdio"),
    unlimited: true,
  },
  {
    id: "claude-desktop",
    title: "Claude Desktop",
    aliases: ["claude", "claude app", "claude ai"],
    format: "json",
    table: "mcpServers",
    files: { user: claudeDesktop },
    entry: plain,
  },
  {
    id: "codex",
    title: "Codex CLI",
    aliases: ["openai codex", "openai"],
    program: "codex",
    format: "toml",
    table: "mcp_servers",
    files: { user: moved("CODEX_HOME", [".codex"], "config.toml"), project: project(".codex", "config.toml") },
    // Without `required` Codex begins after a second without the tools; `codex exec` refuses tools that ask.
    entry: (invocation) => ({
      ...plain(invocation),
      required: true,
      startup_timeout_sec: 120,
      default_tools_approval_mode: "approve",
    }),
    timeout: { key: "tool_timeout_sec", unitMs: 1000, defaultMs: 300_000 },
    breaksNpx: true,
  },
  {
    id: "cursor",
    title: "Cursor",
    aliases: ["cursor agent", "cursor cli", "cursor ide"],
    program: "cursor",
    format: "json",
    table: "mcpServers",
    files: { user: home(".cursor", "mcp.json"), project: project(".cursor", "mcp.json") },
    entry: typed("stdio"),
    // https://cursor.com/docs/mcp/install-links; the site passes it on to the application, for pages that allow only https.
    link: (entry) =>
      `https://cursor.com/en/install-mcp?name=${PRODUCT}&config=${encodeURIComponent(Buffer.from(JSON.stringify(entry)).toString("base64"))}`,
  },
  {
    id: "vscode",
    title: "VS Code",
    aliases: ["visual studio code", "vscode insiders", "github copilot chat"],
    program: "code",
    format: "json",
    table: "servers",
    files: { user: data("Code", "User", "mcp.json"), project: project(".vscode", "mcp.json") },
    entry: typed("stdio"),
    // The site passes it on to the application as vscode:mcp/install?JSON.
    link: (entry) => {
      const target = `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: PRODUCT, ...entry }))}`;
      return `https://vscode.dev/redirect?url=${encodeURIComponent(target)}`;
    },
  },
  {
    id: "gemini",
    title: "Gemini CLI",
    aliases: ["google gemini", "google"],
    program: "gemini",
    format: "json",
    table: "mcpServers",
    files: {
      user: moved("GEMINI_CLI_HOME", [], ".gemini", "settings.json"),
      project: project(".gemini", "settings.json"),
    },
    entry: plain,
    timeout: { key: "timeout", unitMs: 1, defaultMs: 600_000 },
  },
  {
    id: "opencode",
    title: "opencode",
    aliases: ["opencode ai", "sst opencode"],
    program: "opencode",
    format: "json",
    table: "mcp",
    files: {
      user: (places) => opencode(places, joined(places, xdgConfig(places), "opencode")),
      project: (places) => opencode(places, places.project),
    },
    entry: ({ args, command }) => ({ type: "local", command: [command, ...args], enabled: true }),
    unlimited: true,
    head: { $schema: "https://opencode.ai/config.json" },
  },
  {
    id: "windsurf",
    title: "Windsurf",
    aliases: ["codeium", "windsurf ide"],
    program: "windsurf",
    format: "json",
    table: "mcpServers",
    files: { user: home(".codeium", "windsurf", "mcp_config.json") },
    entry: plain,
  },
  {
    id: "zed",
    title: "Zed",
    aliases: ["zed editor", "zeditor", "zed ide"],
    program: "zed",
    format: "json",
    table: "context_servers",
    files: { user: zed, project: project(".zed", "settings.json") },
    entry: plain,
  },
  {
    id: "copilot-cli",
    title: "Copilot CLI",
    aliases: ["github copilot", "github copilot cli", "gh copilot", "github"],
    program: "copilot",
    format: "json",
    table: "mcpServers",
    // Not .mcp.json, which is Claude Code's too and wants another entry.
    files: { user: moved("COPILOT_HOME", [".copilot"], "mcp-config.json"), project: project(".github", "mcp.json") },
    entry: (invocation) => ({ ...typed("local")(invocation), tools: ["*"] }),
  },
];

/** The clients that a word may mean which is the id of none. */
export function clientsMeant(word: string): readonly Client[] {
  const letters = (name: string) => name.toLowerCase().replaceAll(/[^a-z]/g, "");
  const names = ({ aliases, program, title }: Client) => [title, program ?? title, ...aliases];
  return CLIENTS.filter((client) => names(client).some((name) => letters(name) === letters(word)));
}

/** The packaged application of Windows reads a file of its own: https://github.com/anthropics/claude-code/issues/26073 */
function claudeDesktop(places: Places): string {
  const file = "claude_desktop_config.json";
  if (places.platform !== "win32") return data("Claude", file)(places);
  const local = folderOf(places, "LOCALAPPDATA") ?? joined(places, places.home, "AppData", "Local");
  const packaged = joined(places, local, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude");
  return places.exists(packaged) ? joined(places, packaged, file) : data("Claude", file)(places);
}

/** It reads both, and merges them. */
function opencode(places: Places, folder: string): string {
  const [json, withComments] = [joined(places, folder, "opencode.json"), joined(places, folder, "opencode.jsonc")];
  return !places.exists(json) && places.exists(withComments) ? withComments : json;
}

function zed(places: Places): string {
  if (places.platform === "win32") return data("Zed", "settings.json")(places);
  const folder = places.platform === "darwin" ? joined(places, places.home, ".config") : xdgConfig(places);
  return joined(places, folder, "zed", "settings.json");
}
