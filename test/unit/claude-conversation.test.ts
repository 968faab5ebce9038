import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { listConversation, readConversation } from "../../src/claude/folder/conversation.ts";
import { writeConversation } from "../../src/claude/folder/conversation-writer.ts";
import { conversationsFolder } from "../../src/security/claude-own-files.ts";

/** Files of a conversation, read in one configuration folder and written into another. */

const root = mkdtempSync(join(tmpdir(), "ccm-conversation-"));
const id = "0b0e5a6c-7b1d-4f6e-9c2a-3d4e5f60718a";
const LINE = '{"type":"user"}\n';
let config: string;
let cwd: string;
beforeEach(() => {
  config = mkdtempSync(join(root, "config-"));
  cwd = mkdtempSync(join(root, "work-"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const conversation = () => ({ configFolder: config, transcriptId: id });
const target = () => ({ ...conversation(), cwd, replaces: false });
const projectOf = (folder: string) => join(config, "projects", conversationsFolder(folder));

function keep(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(config, name)), { recursive: true });
    writeFileSync(join(config, name), text);
  }
}

async function* given(files: Readonly<Record<string, string>>) {
  for (const [name, text] of Object.entries(files)) yield await Promise.resolve({ name, parts: parts(text) });
}

async function* parts(text: string) {
  for (const character of text) yield await Promise.resolve(Buffer.from(character));
}

async function read(name: string, range?: { offset?: number; length?: number }): Promise<string> {
  const found: Buffer[] = [];
  for await (const part of readConversation(conversation(), name, range)) found.push(part);
  return Buffer.concat(found).toString();
}

/** All files below the configuration folder. */
const all = () =>
  readdirSync(config, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(config.length + 1))
    .toSorted();

const FILES = {
  [`${id}.jsonl`]: LINE,
  [`${id}/subagents/agent-1.jsonl`]: "agent",
  [`${id}/subagents/agent-1.meta.json`]: "{}",
  [`${id}/tool-results/b.txt`]: "long",
  [`file-history/${id}/0a@v1`]: "before",
};

describe("reading a conversation", () => {
  it("transcript, subagents, long results and checkpoints are listed under portable names, with what is left out", async () => {
    keep({
      [`projects/p/${id}.jsonl`]: LINE,
      [`projects/p/${id}/subagents/agent-1.jsonl`]: "agent",
      [`projects/p/${id}/tool-results/b.txt`]: "long",
      [`projects/p/${id}/workflows/scripts/a.js`]: "run()",
      "projects/p/memory/note.md": "of the project",
      [`file-history/${id}/0a@v1`]: "before",
      "file-history/other/0a@v1": "of another",
    });
    symlinkSync("/etc/passwd", join(config, "projects/p", id, "subagents/agent-2.jsonl"));
    symlinkSync("/etc", join(config, "projects/p", id, "tool-results/etc"));
    const changedAt = expect.any(Number) as number;
    expect(await listConversation(conversation())).toEqual({
      files: [
        { name: `${id}.jsonl`, size: 16, changedAt },
        { name: `${id}/subagents/agent-1.jsonl`, size: 5, changedAt },
        { name: `${id}/tool-results/b.txt`, size: 4, changedAt },
        { name: `file-history/${id}/0a@v1`, size: 6, changedAt },
      ],
      leftOut: [`${id}/subagents/agent-2.jsonl`, `${id}/tool-results/etc`, `${id}/workflows`],
    });
    expect(await read(`${id}/subagents/agent-1.jsonl`)).toBe("agent");
    expect(await read(`${id}/subagents/agent-1.jsonl`, { offset: 1, length: 3 })).toBe("gen");
  });

  it("no file is listed for a transcript without a message, or an id that is a path", async () => {
    keep({ [`projects/p/${id}.jsonl`]: '{"type":"summary"}\n' });
    const none = { files: [], leftOut: [] };
    expect(await listConversation(conversation())).toEqual(none);
    expect(await listConversation({ configFolder: config, transcriptId: `../p/${id}` })).toEqual(none);
  });

  it.each([
    `${id}/../x.jsonl`,
    `${id}/subagents/../../x`,
    `${id}/memory/x.md`,
    "/etc/passwd",
    `file-history/${id}`,
    `file-history/${id}/../x`,
    `file-history/other/x`,
    `${id}\\subagents\\x`,
    `${id}/subagents/.x`,
    `${id}/subagents/x\0`,
    "",
  ])("the name %j is refused", async (name) => {
    keep({ [`projects/p/${id}.jsonl`]: LINE });
    await expect(read(name)).rejects.toThrow("is no file of the conversation");
    const other = { ...target(), configFolder: join(config, "other") };
    await expect(writeConversation(other, given({ ...FILES, [name]: "x" }))).rejects.toThrow("is no file of");
  });

  it("a file is not read through a symbolic link", async () => {
    keep({ [`projects/p/${id}.jsonl`]: LINE, "secret/agent-1.jsonl": "secret" });
    mkdirSync(join(config, "projects/p", id, "tool-results"), { recursive: true });
    symlinkSync(join(config, "secret"), join(config, "projects/p", id, "subagents"));
    symlinkSync(join(config, "secret/agent-1.jsonl"), join(config, "projects/p", id, "tool-results/a"));
    await expect(read(`${id}/subagents/agent-1.jsonl`)).rejects.toThrow("through a symbolic link");
    await expect(read(`${id}/tool-results/a`)).rejects.toThrow("ELOOP");
  });
});

describe("writing a conversation", () => {
  it("files are written for the project of another folder, readable by their user only, and listed again", async () => {
    const project = await writeConversation(target(), given(FILES));
    expect(project).toBe(projectOf(cwd));
    const { files } = await listConversation(conversation());
    expect(files.map(({ name }) => name).toSorted()).toEqual(Object.keys(FILES).toSorted());
    for (const [name, text] of Object.entries(FILES)) expect(await read(name)).toBe(text);
    expect(statSync(project).mode & 0o777).toBe(0o700);
    for (const file of all()) expect(statSync(join(config, file)).mode & 0o777).toBe(0o600);
  });

  it("nothing is written if one file fails, or the transcript is missing", async () => {
    async function* failing() {
      yield* given(FILES);
      yield { name: `${id}/tool-results/c`, parts: broken() };
    }
    async function* broken() {
      yield await Promise.resolve(Buffer.from("x"));
      throw new Error("cut");
    }
    await expect(writeConversation(target(), failing())).rejects.toThrow("cut");
    expect(all()).toEqual([]);
    await expect(writeConversation(target(), given({ [`${id}/tool-results/c`]: "x" }))).rejects.toThrow("is missing");
    expect(all()).toEqual([]);
  });

  it("an existing conversation is kept, unless it is to be replaced, and then where it is", async () => {
    keep({ [`projects/elsewhere/${id}.jsonl`]: LINE });
    await expect(writeConversation(target(), given(FILES))).rejects.toThrow("has the conversation already");
    const longer = { [`${id}.jsonl`]: LINE + LINE };
    expect(await writeConversation({ ...target(), replaces: true }, given(longer))).toBe(
      join(config, "projects/elsewhere"),
    );
    expect(await read(`${id}.jsonl`)).toBe(LINE + LINE);
    expect(all()).toEqual([`projects/elsewhere/${id}.jsonl`]);
  });

  it("no file is written through a symbolic link, and a link in place of the file is replaced", async () => {
    const outside = mkdtempSync(join(root, "outside-"));
    writeFileSync(join(outside, "target"), "kept");
    mkdirSync(projectOf(cwd), { recursive: true });
    symlinkSync(outside, join(projectOf(cwd), id));
    await expect(writeConversation(target(), given(FILES))).rejects.toThrow("or a symbolic link");
    rmSync(join(projectOf(cwd), id));
    mkdirSync(join(projectOf(cwd), id, "tool-results"), { recursive: true });
    symlinkSync(join(outside, "target"), join(projectOf(cwd), id, "tool-results/b.txt"));
    await writeConversation(target(), given(FILES));
    expect(readFileSync(join(outside, "target"), "utf8")).toBe("kept");
    expect(readdirSync(outside)).toEqual(["target"]);
    expect(await read(`${id}/tool-results/b.txt`)).toBe("long");
  });

  it("a long folder name ends in Claude Code's hash", () => {
    expect(conversationsFolder("/a b/c.d")).toBe("-a-b-c-d");
    expect(conversationsFolder(`/${"x".repeat(250)}`)).toMatch(/^-x{199}-[\da-z]{1,7}$/);
  });
});
