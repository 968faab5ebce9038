import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseToml } from "smol-toml";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { loadConfig } from "../../src/config/load.ts";
import { JsonObject } from "../../src/domain/json.ts";
import { formatOf, withEntry } from "../../src/install/change.ts";
import { CLIENTS, type Client } from "../../src/install/clients.ts";
import { INSTALLED, PUBLISHED } from "../../src/install/invocation.ts";
import { toolsOf } from "../../src/tools/toolsets.ts";
import { TOOLSET_SETTINGS } from "../kit/tools/fake-engine.ts";

/** Reads each configuration as its client and as the server would, because users copy the files. */
const ROOT = join(import.meta.dirname, "..", "..");
const EXAMPLES = join(ROOT, "examples", "clients");
const DOCUMENT = readFileSync(join(ROOT, "docs", "clients.md"), "utf8");

const fileOf = ({ format, id }: Client): string => `${id}.${format}`;

/** Key of the server list in each client's file: from `CLIENTS`, and for clients unknown to `install`. */
const KEYS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(CLIENTS.map((client) => [fileOf(client), client.table])),
  "cline.json": "mcpServers",
  "copilot.json": "mcpServers",
  "langchain.json": "mcpServers",
};

const Args = z.array(z.string());
const Entry = z.looseObject({ command: z.union([z.string(), Args]), args: Args.optional() });
type Entry = z.infer<typeof Entry>;

const textOf = (file: string): string => readFileSync(join(EXAMPLES, file), "utf8");

function contentOf(file: string): JsonObject {
  const text = textOf(file);
  return JsonObject.parse(file.endsWith(".toml") ? parseToml(text) : JSON.parse(text));
}

function entryOf(file: string): Entry {
  return Entry.parse(JsonObject.parse(contentOf(file)[KEYS[file] ?? ""])["claude-agents-mcp"]);
}

/** Returns one list of words: opencode has a list in `command`, the others have `command` and `args`. */
const commandLine = ({ args = [], command }: Entry): string[] => [command, args].flat();

/** Throws the server's error if the command line is invalid. */
function accept(words: readonly string[]): readonly string[] {
  const argv = words.slice(words.indexOf("claude-agents-mcp") + 1);
  expect([["npx", "-y", "claude-agents-mcp"], ["claude-agents-mcp"]]).toContainEqual(
    words.slice(0, -argv.length || words.length),
  );
  return loadConfig({ argv, env: {} }).toolsets;
}

describe("examples/clients", () => {
  const files = readdirSync(EXAMPLES).toSorted();

  it("examples/clients has a file for each known client", () => {
    expect(files).toEqual(Object.keys(KEYS).toSorted());
  });

  it.each(files)("%s has the server under the key of its client, and nothing else", (file) => {
    const keys = Object.keys(contentOf(file)).filter((key) => key !== "$schema");
    expect(keys).toEqual([KEYS[file]]);
    expect(Object.keys(JsonObject.parse(contentOf(file)[KEYS[file] ?? ""]))).toEqual(["claude-agents-mcp"]);
  });

  it.each(CLIENTS.map((client) => [fileOf(client), client] as const))(
    "%s equals the output of `install`",
    async (file, client) => {
      const entry = client.entry(client.breaksNpx ? INSTALLED : PUBLISHED);
      expect(textOf(file)).toBe(withEntry({ client }, await formatOf(client), { text: "", entry }));
    },
  );

  it.each(files)("%s starts the package with valid arguments", (file) => {
    expect(accept(commandLine(entryOf(file)))).toEqual(["agent"]);
  });

  it.each(files)("%s is quoted in docs/clients.md verbatim", (file) => {
    const language = file.endsWith(".toml") ? "toml" : "json";
    expect(DOCUMENT).toContain(`\n\`\`\`${language}\n${textOf(file)}\`\`\`\n`);
  });

  it("`copilot.json` lists the tools of the server, because its client needs their names", () => {
    const names = toolsOf(["agent"], TOOLSET_SETTINGS).map(({ name }) => name);
    expect(entryOf("copilot.json")["tools"]).toEqual(names.toSorted());
  });
});

describe("docs/clients.md", () => {
  it.each(CLIENTS.map(({ files, title }) => [title, files] as const))(
    "docs/clients.md names the files of %s",
    (title, files) => {
      const [, section = ""] = DOCUMENT.split(`\n## ${title}\n`);
      const [before = ""] = section.split("\n## ");
      const places = { platform: "darwin", env: {}, home: "~", project: ".", exists: () => false } as const;
      const named = Object.values(files).map((file) => file(places).replace("claude_desktop_config.json", ""));
      // Skips the user's file of VS Code: docs/clients.md gives a command for it.
      const expected = named.filter((path) => !path.includes("/Code/User/"));
      expect(expected.filter((path) => !before.includes(path))).toEqual([]);
    },
  );

  it("docs/clients.md has no configuration without a file in examples/clients", () => {
    expect(DOCUMENT.match(/^```(?!sh$)\w/gm)).toHaveLength(Object.keys(KEYS).length);
  });

  it("docs/clients.md adds only valid arguments of the server", () => {
    const lists = [...DOCUMENT.matchAll(/`(\["-.*?\])`/g)].map(([, list = ""]) => Args.parse(JSON.parse(list)));
    const lines = lists.map((args) => (args[0] === "-y" ? ["npx", ...args] : ["claude-agents-mcp", ...args]));
    expect(lines.map(accept)).toEqual([
      ["agent", "query"],
      ["agent", "query"],
    ]);
  });
});
