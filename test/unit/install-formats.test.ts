import fc from "fast-check";
import { parse as parseJson } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { describe, expect, it } from "vitest";
import { UnusableFile, type Entry, type Format } from "../../src/install/format.ts";
import { JSON_FORMAT } from "../../src/install/json-format.ts";
import { TOML_FORMAT } from "../../src/install/toml-format.ts";

/** Tests where `set` writes and `remove` deletes an entry, with every other byte unchanged. */

const ENTRY: Entry = { command: "node", args: ["/srv/main.js"] };
const path = ["servers", "ours"] as const;

function refusal(format: Format, text: string): string {
  try {
    format.set(text, path, ENTRY);
  } catch (error) {
    if (error instanceof UnusableFile) return error.message;
    throw error;
  }
  return "accepted";
}

/** True if `whole` contains the characters of `part` in order: text was inserted and nothing removed. */
function hasAllOf(whole: string, part: string): boolean {
  let found = 0;
  for (const character of whole) if (character === part[found]) found += 1;
  return found === part.length;
}

const OURS = `"ours": {\n      "command": "node",\n      "args": ["/srv/main.js"]\n    }`;

describe("an entry in JSON", () => {
  it.each([
    ["an empty file", "", `{\n  "servers": {\n    ${OURS}\n  }\n}\n`],
    ["comments alone", "// mine", `// mine\n{\n  "servers": {\n    ${OURS}\n  }\n}\n`],
    ["an empty object", "{}", `{\n  "servers": {\n    ${OURS}\n  }\n}`],
    ["an object over two lines", "{\n}\n", `{\n  "servers": {\n    ${OURS}\n  }\n}\n`],
    ["an empty table", `{\n  "servers": {}\n}\n`, `{\n  "servers": {\n    ${OURS}\n  }\n}\n`],
    [
      "a comment behind the last server",
      `{\n  "servers": {\n    "a": {} // keep, "this"\n    /* and this */\n  }\n}`,
      `{\n  "servers": {\n    "a": {}, // keep, "this"\n    ${OURS}\n    /* and this */\n  }\n}`,
    ],
    [
      "a comma behind the last server",
      `{\n  "servers": {\n    "a": {}, // keep\n  },\n}`,
      `{\n  "servers": {\n    "a": {}, // keep\n    ${OURS},\n  },\n}`,
    ],
    [
      "commas at the start of lines",
      `{\n  "servers": {\n    "a": {}\n    ,\n  }\n}`,
      `{\n  "servers": {\n    "a": {}\n    ,\n    ${OURS},\n  }\n}`,
    ],
    [
      "one line",
      `{"servers":{"a":{}}}`,
      `{"servers":{"a":{}, "ours": { "command": "node", "args": ["/srv/main.js"] }}}`,
    ],
    [
      "one line with a comma at its end",
      `{"servers":{"a":{},}}`,
      `{"servers":{"a":{}, "ours": { "command": "node", "args": ["/srv/main.js"] },}}`,
    ],
  ])("an entry is written into JSON: %s", (_, before, after) => {
    expect(JSON_FORMAT.set(before, path, ENTRY)).toBe(after);
    expect(parseJson(after)).toMatchObject({ servers: { ours: ENTRY } });
  });

  it("an entry in JSON has the indentation and the line breaks of the file", () => {
    const tabs = JSON_FORMAT.set('{\r\n\t"z": 1,\r\n\t"a": 2\r\n}\r\n', path, { command: "x" });
    expect(tabs).toBe(
      '{\r\n\t"z": 1,\r\n\t"a": 2,\r\n\t"servers": {\r\n\t\t"ours": {\r\n\t\t\t"command": "x"\r\n\t\t}\r\n\t}\r\n}\r\n',
    );
  });

  it("an entry in JSON that starts a program keeps its other keys, and one with an address is replaced", () => {
    const own = '{"servers": {"ours": {"command": "old", /* mine */ "env": {"K": "v"}}}}';
    expect(JSON_FORMAT.set(own, path, ENTRY)).toBe(
      '{"servers": {"ours": {"command": "node", /* mine */ "env": {"K": "v"}, "args": ["/srv/main.js"]}}}',
    );
    const address = '{"servers": {"ours": {"url": "http://127.0.0.1:1/"}}}';
    expect(parseJson(JSON_FORMAT.set(address, path, ENTRY))).toEqual({ servers: { ours: ENTRY } });
  });

  it.each([
    ['{"servers": {\n"a": [}}', "JSON: ValueExpected (line 2, column 7)"],
    ['{"servers": {"a": 1}', "JSON: CloseBraceExpected (line 1, column 21)"],
    ["[1]", "no object where the file is expected (line 1, column 1)"],
    ['{"servers": null}', "no object where servers is expected (line 1, column 13)"],
    ['{"servers": {},\n "servers": {}}', 'has "servers" twice (line 2)'],
    ['{"servers": {"ours": {}, "ours": {}}}', 'has "ours" twice (line 1)'],
  ])("an entry is refused in unusable JSON: %s", (text, message) => {
    expect(refusal(JSON_FORMAT, text)).toContain(message);
  });

  it.each([
    ['{\n  "servers": {\n    "ours": {},\n    "b": {}\n  }\n}', '{\n  "servers": {\n    "b": {}\n  }\n}'],
    ['{\n  "servers": {\n    "b": {}, // b\n    "ours": {}\n  }\n}', '{\n  "servers": {\n    "b": {} // b\n  }\n}'],
    ['{\n  "servers": {\n    "b": {},\n    "ours": {},\n  }\n}', '{\n  "servers": {\n    "b": {},\n  }\n}'],
    ['{"servers": { // b\n "ours": {}}}', '{"servers": { // b\n}}'],
    ['{"servers":{"b":{}, "ours": {}}}', '{"servers":{"b":{}}}'],
  ])("an entry is removed from JSON with its comma: %j", (before, after) => {
    expect(JSON_FORMAT.remove(before, path, "entry")).toBe(after);
  });

  it("the table of a removed entry is removed if nothing else is in it", () => {
    expect(JSON_FORMAT.remove('{\n  "z": 1,\n  "servers": {\n    "ours": {}\n  }\n}', path, "empty table")).toBe(
      '{\n  "z": 1\n}',
    );
    expect(JSON_FORMAT.remove('{"servers":{"b":{}, "ours": {}}}', path, "empty table")).toBe('{"servers":{"b":{}}}');
  });

  it("an entry is added to and removed from any JSON, and nothing else changes", () => {
    const key = fc.stringMatching(/^[a-z]{1,4}$/);
    const gap = fc.constantFrom("", " ", "\n", "\r\n  ", "\t", " /* , } */ ", ' // , "ours"\n');
    const file = fc.tuple(
      fc.uniqueArray(key, { maxLength: 3 }),
      fc.array(gap, { minLength: 12, maxLength: 12 }),
      fc.boolean(),
    );
    fc.assert(
      fc.property(file, ([names, gaps, hasComma]) => {
        const at = (index: number) => gaps[index % gaps.length] ?? "";
        const inner = names.map(
          (name, index) => `${at(index)}"${name}"${at(index + 1)}:${at(index + 2)}[1]${at(index + 3)}`,
        );
        const comma = hasComma && names.length > 0 ? "," : "";
        const before = `${at(4)}{${at(5)}"servers":${at(6)}{${inner.join(",")}${comma}${at(7)}}${at(8)}}${at(9)}`;
        const after = JSON_FORMAT.set(before, path, ENTRY);
        const others = Object.fromEntries(names.map((name) => [name, [1]]));
        expect(parseJson(after)).toEqual({ servers: { ...others, ours: ENTRY } });
        expect(hasAllOf(after, before)).toBe(true);
        expect(JSON_FORMAT.parse(JSON_FORMAT.remove(after, path, "entry"), path)).toEqual({ servers: others });
      }),
    );
  });
});

const TABLE = `[servers.ours]\ncommand = "node"\nargs = ["/srv/main.js"]\n`;

describe("an entry in TOML", () => {
  it.each([
    ["an empty file", "", TABLE],
    ["a file without a last line break", "# mine\na = 1", `# mine\na = 1\n\n${TABLE}`],
    ["a file with an empty last line", "a = 1\n\n", `a = 1\n\n${TABLE}`],
    [
      "a table of other servers",
      "[servers.b]\nx = '''\n[servers.ours]\n'''\n",
      `[servers.b]\nx = '''\n[servers.ours]\n'''\n\n${TABLE}`,
    ],
    [
      "a list of tables of others",
      "[[a]]\n[[a.servers]]\n[[a.servers]]\n",
      `[[a]]\n[[a.servers]]\n[[a.servers]]\n\n${TABLE}`,
    ],
    ["a table of its tools", "[servers.ours.tools.a]\nb = 1\n", `[servers.ours.tools.a]\nb = 1\n\n${TABLE}`],
    ["lines that end in CRLF", "a = 1\r\n", `a = 1\r\n\r\n${TABLE.replaceAll("\n", "\r\n")}`],
  ])("an entry is written into TOML: %s", (_, before, after) => {
    expect(TOML_FORMAT.set(before, path, ENTRY)).toBe(after);
    expect(parseToml(after)).toMatchObject({ servers: { ours: ENTRY } });
  });

  it("an entry in TOML is changed key by key and keeps its comments", () => {
    const before = '[servers.ours] # mine\ncommand = "old" # was\nenv = { K = "v" } # key\n\n# next\n[other]\nx = 1\n';
    const after = TOML_FORMAT.set(before, path, ENTRY);
    expect(after).toBe(before.replace('"old"', '"node"').replace("# key", '# key\nargs = ["/srv/main.js"]'));
    expect(parseToml(after)).toMatchObject({ servers: { ours: { ...ENTRY, env: { K: "v" } } } });
  });

  it.each([
    ["a = 1\nb = [\n", "TOML: ", "line 3, column 1"],
    ["a = 1\na = 2\n", "TOML: ", "line 2"],
    ['servers = { ours = { command = "x" } }\n', "servers is not a separate table", "line 1"],
    ['[servers]\nours = { command = "x" }\n', "servers.ours is not a separate table", "line 2"],
    ['servers.ours.command = "x"\n', "servers.ours is not a separate table", "line 1"],
    ["[[servers.ours]]\na = 1\n", "servers.ours is a list of tables", "line 1"],
    ["a = 1\n[[servers]]\n", "servers is a list of tables", "line 2"],
    ["[[servers]]\n[servers.ours]\n", "servers is a list of tables", "line 1"],
    [
      "[servers.ours]\n[[servers.ours.tools]]\n[[servers.ours.tools]]\n",
      "servers.ours.tools is a list of tables",
      "line 2",
    ],
    ['[servers.ours]\ncommand.x = "y"\n', "command is written with dots", "line 2"],
  ])("an entry is refused in unusable TOML: %j", (text, problem, place) => {
    expect(refusal(TOML_FORMAT, text)).toContain(problem);
    expect(refusal(TOML_FORMAT, text)).toContain(place);
  });

  it("an entry in TOML is removed with the tables below it", () => {
    const rest = "# top\na = 1\n";
    const other = "\n# next\n[other]\nx = 1\n";
    const ours = `\n${TABLE}\n[servers.ours.tools.claude_code]\napproval_mode = "approve" # one\n`;
    expect(TOML_FORMAT.remove(rest + ours + other, path, "entry")).toBe(rest + other);
    expect(TOML_FORMAT.remove(`${rest}\n${TABLE}`, path, "entry")).toBe(rest);
    expect(TOML_FORMAT.remove(rest, path, "entry")).toBe(rest);
  });

  it("an entry in TOML escapes what TOML does not allow in a string", () => {
    const odd = { command: 'C:\\Program Files\\a "b"\u0007\u007f', args: ["ü", "\u{1F600}"] };
    expect(parseToml(TOML_FORMAT.set("", path, odd))).toEqual({ servers: { ours: odd } });
  });
});
