import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parse as parseJson } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { planInstall, planUninstall, readPresence, type Aim } from "../../src/install/change.ts";
import { CLIENTS, type Client, type Scope } from "../../src/install/clients.ts";
import { UnusableFile } from "../../src/install/format.ts";
import type { Places } from "../../src/install/places.ts";

/** Files of clients before and after `install` and `uninstall`, byte for byte. */

/** Folder in memory if possible: each write waits for the disk, which takes long on a shared disk. */
const MEMORY = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

let root: string;
let places: Places;

beforeEach(() => {
  root = mkdtempSync(join(MEMORY, "install-ü "));
  places = { platform: "linux", env: {}, home: join(root, "home"), project: join(root, "project"), exists: existsSync };
  for (const folder of [places.home, places.project]) mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true }));

const COMMAND = { command: "/usr/bin/node", args: ["/srv/main.js"] };

function aim(client: Client, scope: Scope): Aim {
  return { client, scope, places, stateFolder: join(root, "state") };
}

/** Aims at the file of the client `id`. */
function aimAt(id: string, scope: Scope = "user"): Aim & { file: string } {
  const client = CLIENTS.find((each) => each.id === id)!;
  return { ...aim(client, scope), file: client.files[scope]!(places) };
}

function put(file: string, content: string | Uint8Array): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

async function install(at: Aim, command = COMMAND): Promise<string | undefined> {
  return (await planInstall(at, at.client.entry(command))).perform();
}

async function uninstall(at: Aim): Promise<string | undefined> {
  return (await planUninstall(at)).perform();
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error("accepted"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UnusableFile);
  return error instanceof Error ? error.message : "";
}

const deep = (begin: string, end: string) => `${begin.repeat(20_000)}1${end.repeat(20_000)}`;

/** `undefined` if `file` is not a regular file, or is too large to compare. */
function contentOf(file: string): string | undefined {
  const found = existsSync(file) ? lstatSync(file) : undefined;
  return found?.isFile() && found.size < 1e6 ? readFileSync(file, "latin1") : undefined;
}

const every = CLIENTS.flatMap((client) =>
  Object.keys(client.files).map(
    (scope) => ({ name: `${client.id} (${scope})`, client, scope: scope === "user" ? "user" : "project" }) as const,
  ),
);

/** Files that a client may have before `install`, by description. `table` is the name of the object or table for servers. */
const CONTENTS = {
  json: (table: string): Record<string, string> => ({
    "an empty file": "",
    "an empty object": "{}",
    "no table": '{\n  "z": 1,\n  "a": { "b": [1, 2] }\n}\n',
    "an empty table": `{ "${table}": {} }\n`,
    "other servers, comments and odd order": `// mine\n{\n  "z": true, // odd\n  "${table}": {\n    "other": { "command": "x", "env": { "K": "v" } }, /* theirs */\n  },\n  "a": null\n}`,
    tabs: `{\n\t"${table}": {\n\t\t"other": {}\n\t}\n}\n`,
    CRLF: `{\r\n    "${table}": {\r\n        "other": {}\r\n    }\r\n}\r\n`,
    "a byte order mark": `\uFEFF{\n  "${table}": {}\n}\n`,
    "one line": `{"${table}":{"other":{"command":"x"}},"z":1}`,
  }),
  toml: (table: string): Record<string, string> => ({
    "an empty file": "",
    "comments alone": "# mine",
    "no last line break": 'model = "x" # mine',
    "other servers, comments and odd order": `# mine\n[z]\nx = [\n  1, # one\n]\n\n[${table}.other]\ncommand = "x"\n[${table}.other.env]\nK = "v"\n\n# last\n`,
    CRLF: `# mine\r\n[${table}.other]\r\ncommand = "x"\r\n`,
    "a byte order mark": "\uFEFFa = 1\n",
  }),
};

/** Returns all contents for the scope `user`, and one for `project`, because a scope only changes the path. */
function contentsFor({ format, table }: Client, scope: Scope): [string, string][] {
  const all = Object.entries(CONTENTS[format](table));
  return scope === "user" ? all : all.filter(([name]) => name.startsWith("other servers"));
}

describe.each(every)("$name", ({ client, scope }) => {
  const at = () => aim(client, scope);
  const fileOf = () => client.files[scope]!(places);

  it("`install` creates the file with the entry, and `uninstall` deletes it with its folders", async () => {
    const before = readdirSync(root, { recursive: true });
    await install(at());
    expect(await readPresence(at(), client.entry(COMMAND))).toBe("installed");
    expect(statSync(fileOf()).mode & 0o777).toBe(scope === "user" ? 0o600 : 0o644);
    await uninstall(at());
    const left = readdirSync(root, { recursive: true }).filter((name) => !String(name).startsWith("state"));
    expect(left).toEqual(before);
  });

  it.each(contentsFor(client, scope))("`uninstall` restores the file byte for byte: %s", async (_, content) => {
    const file = fileOf();
    put(file, content);
    chmodSync(file, 0o640);
    const copy = await install(at());
    const written = readFileSync(file, "utf8");
    expect(readFileSync(copy!, "utf8")).toBe(content);
    expect(statSync(copy!).mode & 0o777).toBe(0o600);
    const text = written.replace("\uFEFF", "");
    const value: unknown = client.format === "toml" ? parseToml(text) : parseJson(text);
    expect(value).toMatchObject({ [client.table]: { "claude-agents-mcp": client.entry(COMMAND) } });
    expect(written.startsWith("\uFEFF")).toBe(content.startsWith("\uFEFF"));
    expect((await planInstall(at(), client.entry(COMMAND))).after).toBe(text);
    await install(at(), { command: "npx", args: ["-y", "claude-agents-mcp"] });
    expect(await readPresence(at(), client.entry(COMMAND))).toBe("different");
    await uninstall(at());
    expect(readFileSync(file, "utf8")).toBe(content);
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(await readPresence(at(), client.entry(COMMAND))).toBe("absent");
  });
});

describe("a file that others change after install", () => {
  it("`uninstall` keeps changes that others made to the file", async () => {
    const at = aimAt("cursor");
    put(at.file, '{\n  "a": 1\n}\n');
    await install(at);
    writeFileSync(at.file, readFileSync(at.file, "utf8").replace('"a": 1', '"a": 2'));
    await uninstall(at);
    expect(readFileSync(at.file, "utf8")).toBe('{\n  "a": 2\n}\n');
  });

  it("`uninstall` keeps a file created by `install` if another program added a server, also after a second `install`", async () => {
    const at = aimAt("opencode");
    await install(at);
    const theirs = readFileSync(at.file, "utf8").replace('"mcp": {', '"mcp": {\n    "other": { "type": "local" },');
    writeFileSync(at.file, theirs);
    await install(at, { command: "x", args: [] });
    await uninstall(at);
    expect(parseJson(readFileSync(at.file, "utf8"))).toEqual({
      $schema: "https://opencode.ai/config.json",
      mcp: { other: { type: "local" } },
    });
  });

  it("`uninstall` deletes a changed file if only what `install` had created is left", async () => {
    const at = aimAt("opencode");
    await install(at);
    writeFileSync(at.file, `${readFileSync(at.file, "utf8")}\n`);
    await uninstall(at);
    expect(existsSync(dirname(at.file))).toBe(false);
  });

  it("`uninstall` restores a file that the user has rewritten, also after a second `install`", async () => {
    const at = aimAt("cursor");
    await install(at);
    const own = '{ "mcpServers": { "other": { "command": "x" } } }\n';
    writeFileSync(at.file, own);
    await install(at);
    await uninstall(at);
    expect(readFileSync(at.file, "utf8")).toBe(own);
  });

  it("`uninstall` removes an entry even if it existed before `install`; the copy made by `install` keeps it", async () => {
    const at = aimAt("codex");
    const own = '[mcp_servers.claude-agents-mcp]\ncommand = "mine"\n';
    put(at.file, own);
    expect(readFileSync((await install(at))!, "utf8")).toBe(own);
    await uninstall(at);
    expect(readFileSync(at.file, "utf8")).toBe("");
  });

  it("a file is not written if it has changed since the plan", async () => {
    const at = aimAt("cursor");
    const change = await planInstall(at, at.client.entry(COMMAND));
    put(at.file, "{}");
    expect(await refusal(change.perform())).toBe(
      `${at.file} was changed by another program in the meantime. Nothing was written: try again.`,
    );
    expect(readFileSync(at.file, "utf8")).toBe("{}");
    expect(readdirSync(dirname(at.file))).toEqual(["mcp.json"]);
  });
});

describe("a file that cannot be used", () => {
  it.each([
    ["broken", (file: string) => put(file, '{"a": }'), "is not valid JSON: ValueExpected (line 1, column 7)"],
    ["read-only", (file: string) => (put(file, "{}"), chmodSync(file, 0o444)), "is read-only"],
    ["not UTF-8", (file: string) => put(file, new Uint8Array([0xff, 0xfe, 0x7b, 0])), "is not UTF-8"],
    ["a folder", (file: string) => mkdirSync(file, { recursive: true }), "is not a regular file"],
    ["below a file", (file: string) => put(dirname(file), ""), "cannot be reached"],
    ["a link to itself", (file: string) => (mkdirSync(dirname(file)), symlinkSync(file, file)), "cannot be reached"],
    ["huge", (file: string) => (put(file, "{}"), truncateSync(file, 3e9)), "is larger than 64 MiB"],
    ["with deep lists", (file: string) => put(file, `{"a": ${deep("[", "]")}}`), "is nested too deeply"],
    ["with deep objects", (file: string) => put(file, deep('{"a": ', "}")), "is nested too deeply"],
    ["without an end", (file: string) => put(file, deep('{"a": ', "")), "is nested too deeply"],
    ["ambiguous", (file: string) => put(file, '{"mcpServers": {}, "mcpServers": {}}'), 'has "mcpServers" twice'],
  ])("an unusable file is refused with its path and kept: %s", async (_, make, problem) => {
    const at = aimAt("cursor");
    make(at.file);
    const before = contentOf(at.file);
    expect((await refusal(install(at))).startsWith(`${at.file} ${problem}`)).toBe(true);
    // `uninstall` may have nothing to do without an entry.
    const removed = await uninstall(at).catch((error: unknown) => String(error));
    expect(removed ?? at.file).toContain(at.file);
    expect(contentOf(at.file)).toBe(before);
  });

  it.each([
    ["lists", deep("[", "]")],
    ["tables", deep("{a=", "}")],
  ])("a TOML file of deep %s is refused with its path and kept", async (_, value) => {
    const at = aimAt("codex");
    put(at.file, `x = ${value}\n`);
    expect(await refusal(install(at))).toBe(
      `${at.file} is nested too deeply. Edit it by hand: install --print prints the entry.`,
    );
    expect(readFileSync(at.file, "utf8")).toBe(`x = ${value}\n`);
  });

  it("a file is not written if `install` cannot record the change", async () => {
    const at = aimAt("cursor");
    put(join(root, "state"), "");
    expect(await refusal(install(at))).toContain(`${at.file} was left as it is: ENOTDIR`);
    expect(existsSync(dirname(at.file))).toBe(false);
    put(at.file, "{}");
    expect(await refusal(install(at))).toContain(`${at.file} was left as it is: ENOTDIR`);
    expect(readFileSync(at.file, "utf8")).toBe("{}");
  });
});

describe("links to files of clients", () => {
  it("a user's link to a file in the home folder is followed and stays", async () => {
    const at = aimAt("gemini");
    const target = join(places.home, "dotfiles", "gemini.json");
    put(target, "{}\n");
    mkdirSync(dirname(at.file));
    symlinkSync(target, at.file);
    await install(at);
    expect(parseJson(readFileSync(target, "utf8"))).toHaveProperty("mcpServers");
    await uninstall(at);
    expect(readFileSync(target, "utf8")).toBe("{}\n");
    expect(readFileSync(at.file, "utf8")).toBe("{}\n");
  });

  it.each(["file", "folder"])("a project's link out of the project is refused (%s)", async (kind) => {
    const at = aimAt("gemini", "project");
    const outside = join(places.home, "victim");
    put(join(outside, "settings.json"), "{}");
    if (kind === "folder") symlinkSync(outside, dirname(at.file));
    else {
      mkdirSync(dirname(at.file));
      symlinkSync(join(outside, "settings.json"), at.file);
    }
    expect(await refusal(install(at))).toContain("is a link to");
    expect(readFileSync(join(outside, "settings.json"), "utf8")).toBe("{}");
  });

  it("a link to a missing file is refused", async () => {
    const at = aimAt("cursor");
    mkdirSync(dirname(at.file));
    symlinkSync(join(places.home, "gone"), at.file);
    expect(await refusal(install(at))).toContain("which does not exist");
  });
});
