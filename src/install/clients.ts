import { applicationData, folderOf, joined, xdgConfig, type Places } from "./places.ts";
import type { Invocation } from "./invocation.ts";
import type { Entry } from "./format.ts";

/** Clients that `install` can configure: file, place of the entry in the file, and entry. Reasons: docs/clients.md. */

export type Scope = "user" | "project";

export interface Client {
  /** Name on the command line and of the file in `examples/clients`. */
  readonly id: string;
  readonly title: string;
  /** Further names that people type, beside `title` and `program`. */
  readonly aliases: readonly string[];
  /** Program on PATH, if any. */
  readonly program?: string;
  readonly format: "json" | "toml";
  /** Key of the object or table that contains the servers. */
  readonly table: string;
  readonly files: Readonly<Partial<Record<Scope, (places: Places) => string>>>;
  readonly entry: (invocation: Invocation) => Entry;
  /** Setting that allows calls longer than `defaultMs`. Absent if unknown or not needed. */
  readonly timeout?: { readonly key: string; readonly unitMs: number; readonly defaultMs: number };
  /** True if the client waits for a call of any length. Absent if a timeout exists, or may exist. */
  readonly unlimited?: true;
  /** Returns a link for browsers to an entry by its name. The client adds the entry once its user has confirmed. */
  readonly link?: (entry: Entry, name: string) => string;
  /**
   * True if the client kills `npx` while `npx` installs this server; the leftover lock then delays every `npx` for a minute.
   * `install` advises an installed package instead.
   */
  readonly breaksNpx?: true;
  /** Content of a new file besides the entry. */
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

/** Path in the folder that the environment variable `variable` names, otherwise in `folder` of the home folder. */
const inVariable =
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
    files: { user: inVariable("CLAUDE_CONFIG_DIR", [], ".claude.json"), project: project(".mcp.json") },
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
    files: { user: inVariable("CODEX_HOME", [".codex"], "config.toml"), project: project(".codex", "config.toml") },
    // Without `required`, Codex goes on without the tools of a server that has not answered within a second. `codex exec`
    // refuses tools that ask for approval.
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
    // https://cursor.com/docs/mcp/install-links; the site redirects to the application, for pages that allow only https.
    link: (entry, name) =>
      `https://cursor.com/en/install-mcp?name=${name}&config=${encodeURIComponent(Buffer.from(JSON.stringify(entry)).toString("base64"))}`,
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
    // The site redirects to the application: `vscode:mcp/install?JSON`.
    link: (entry, name) => {
      const target = `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...entry }))}`;
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
      user: inVariable("GEMINI_CLI_HOME", [], ".gemini", "settings.json"),
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
    // Not `.mcp.json`, because Claude Code reads it too and needs another entry.
    files: {
      user: inVariable("COPILOT_HOME", [".copilot"], "mcp-config.json"),
      project: project(".github", "mcp.json"),
    },
    entry: (invocation) => ({ ...typed("local")(invocation), tools: ["*"] }),
  },
];

/** Finds the clients that `word` may mean by title, program or alias. */
export function clientsMeant(word: string): readonly Client[] {
  const letters = (name: string) => name.toLowerCase().replaceAll(/[^a-z]/g, "");
  const names = ({ aliases, program, title }: Client) => [title, program ?? title, ...aliases];
  return CLIENTS.filter((client) => names(client).some((name) => letters(name) === letters(word)));
}

/** The packaged application of Windows reads its own file: https://github.com/anthropics/claude-code/issues/26073 */
function claudeDesktop(places: Places): string {
  const file = "claude_desktop_config.json";
  if (places.platform !== "win32") return data("Claude", file)(places);
  const local = folderOf(places, "LOCALAPPDATA") ?? joined(places, places.home, "AppData", "Local");
  const packaged = joined(places, local, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude");
  return places.exists(packaged) ? joined(places, packaged, file) : data("Claude", file)(places);
}

/** Chooses the existing file; opencode reads and merges both. */
function opencode(places: Places, folder: string): string {
  const [json, withComments] = [joined(places, folder, "opencode.json"), joined(places, folder, "opencode.jsonc")];
  return !places.exists(json) && places.exists(withComments) ? withComments : json;
}

function zed(places: Places): string {
  if (places.platform === "win32") return data("Zed", "settings.json")(places);
  const folder = places.platform === "darwin" ? joined(places, places.home, ".config") : xdgConfig(places);
  return joined(places, folder, "zed", "settings.json");
}
