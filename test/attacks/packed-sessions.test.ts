import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { readPack, writePack } from "../../src/pack/container.ts";
import { expectedRefusal, runSessions } from "../kit/clients/sessions-command.ts";
import { TwoHomes } from "../kit/clients/two-homes.ts";
import { repository } from "../kit/git-repository.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Packed sessions that are damaged, hostile, or meet another payer. */

const world = useWorld({ agent: "stand-in", daemon: "never" });
let server: Server;
let homes: TwoHomes;
beforeAll(async () => {
  homes = new TwoHomes(world);
  server = await world.server();
});

async function begun(cwd = world.folder(), more: object = {}): Promise<string> {
  const prompt = scriptTag([{ text: "First answer." }]);
  return (await server.call("claude_code", { prompt, cwd, waitMs: 20_000, ...more })).sessionId;
}

/** `text` has a character for each byte. */
type TextPart = readonly [name: string, text: string];

async function partsOf(file: string): Promise<TextPart[]> {
  const found: TextPart[] = [];
  for await (const { bytes, name } of readPack(Readable.from([readFileSync(file)]))) {
    const all: Uint8Array[] = [];
    for await (const each of bytes) all.push(each);
    found.push([name, Buffer.concat(all).toString("latin1")]);
  }
  return found;
}

async function writeParts(file: string, parts: readonly TextPart[]): Promise<void> {
  const given = Readable.from(
    parts.map(([name, text]) => ({ name, bytes: Readable.from([Buffer.from(text, "latin1")]) })),
  );
  const all: Buffer[] = [];
  for await (const bytes of writePack(given)) all.push(bytes);
  writeFileSync(file, Buffer.concat(all));
}

describe("a packed session", () => {
  it("the payer is compared by kind and account, and a difference is told", async () => {
    const { file } = await homes.pack(await begun());
    const other = homes.another({ ANTHROPIC_API_KEY: "sk-another-key-of-another-account" });
    const told = await other.run("unpack", file, "--cwd", world.folder());
    expect(told.stdout).toContain("paid by ANTHROPIC_API_KEY, of another account than before.");
    const token = homes.another({ ANTHROPIC_API_KEY: "", CLAUDE_CODE_OAUTH_TOKEN: "t" });
    const changed = await token.run("unpack", file, "--cwd", world.folder());
    expect(changed.stdout).toContain("paid by CLAUDE_CODE_OAUTH_TOKEN; so far ANTHROPIC_API_KEY has paid.");
  });

  it("a running turn is interrupted first if asked, and its files are unpacked", async () => {
    const cwd = world.folder();
    repository(cwd, "begin");
    const prompt = scriptTag([{ text: "Never.", gateBefore: "closed" }]);
    const { sessionId } = await server.call("claude_code", { prompt, cwd });
    const file = join(world.folder(), "s.session");
    expect(await homes.here("pack", sessionId, "--output", file, "--interrupt")).toMatchObject({ status: 0 });
    const { home, run } = homes.another();
    expect(await run("unpack", file, "--cwd", join(home, "moved"))).toMatchObject({ status: 0 });
    expect(readFileSync(join(home, "moved", "a.txt"), "utf8")).toBe("changed\n");
  });

  it("options that approve are kept if asked, and a session inside a session is refused", async () => {
    const sessionId = await begun(world.folder(), { allowedTools: ["Bash(ls)"] });
    await server.call("claude_code_session", { action: "close", sessionId });
    const { file } = await homes.pack(sessionId);
    const { run } = homes.another();
    const { stdout } = await run("unpack", file, "--cwd", world.folder(), "--keep-approvals");
    expect(stdout).not.toContain("Left out");
    expect(stdout).toContain("It is closed, as it was.");
    const inside = await runSessions(["unpack", file], { ...world.environment, CLAUDE_CODE_MCP_DEPTH: "1" });
    expect(inside).toMatchObject({ status: 2, stdout: "" });
  });
});

describe("a command that ends in the middle", () => {
  it("leaves nothing, and says so: a reader that ends, a signal, a full disk; `-` is stdin", async () => {
    const cwd = world.folder();
    repository(cwd, "begin");
    writeFileSync(join(cwd, "large"), randomBytes(2_000_000));
    const sessionId = await begun(cwd);
    const { file } = await homes.pack(sessionId);
    const { environment, home } = homes.another();
    const temporary = world.folder();
    const shell = async (script: string, more: object = {}) => {
      const env = { ...world.environment, ...more, PATH: process.env["PATH"], TMPDIR: temporary };
      const child = spawn("bash", ["-c", script], { env, stdio: ["ignore", "pipe", "pipe"] });
      const [out, end] = await Promise.all([readText(child.stderr), once(child, "close")]);
      return { out, status: Number(end[0]), left: readdirSync(temporary) };
    };
    const main = `${process.execPath} dist/cli/main.js sessions`;
    const left = expect.stringMatching(/\. Nothing is left of the attempt\.\n$/) as string;
    const failed = { out: left, status: 1, left: [] };
    expect(await shell(`set -o pipefail; ${main} pack ${sessionId} | head -c 9`)).toEqual(failed);
    expect(await shell(`${main} pack ${sessionId} >/dev/full`)).toEqual(failed);
    // The first byte has come, and no reader takes the others: while they are made, and while one waits in the pipe.
    const late = (pause: string) =>
      `exec 3< <(exec ${main} pack ${sessionId}); head -c 9 <&3 >/dev/null; ${pause} kill -TERM $!; wait $!`;
    expect(await shell(late(""))).toEqual(failed);
    expect(await shell(late("sleep 2;"))).toEqual(failed);
    const target = join(home, "moved");
    const unpack = `${main} unpack - --cwd ${target}`;
    expect(await shell(`${unpack} <${file}`, environment)).toEqual({ out: "", status: 0, left: [] });
    expect(readdirSync(target)).toContain("large");
  });
});

describe("a damaged or hostile file", () => {
  it("is refused, and nothing of it stays: no session, no conversation, no folder", async () => {
    const cwd = world.folder();
    repository(cwd, "begin");
    const { file } = await homes.pack(await begun(cwd));
    const whole = readFileSync(file);
    const { home, run } = homes.another();
    const target = join(home, "target");
    const cut = join(home, "cut");
    writeFileSync(cut, whole.subarray(0, whole.length - 20));
    expect(await run("unpack", cut, "--cwd", target)).toEqual(expectedRefusal(1, /file: is damaged/));
    expect(await run("unpack", join(home, "none"))).toEqual(expectedRefusal(1, /file: .* cannot be read: ENOENT/));
    writeFileSync(cut, "hello");
    expect(await run("unpack", cut)).toEqual(expectedRefusal(1, /file: is not a packed session/));
    // A folder in place of the transcript's, which is found only when the files and the log are written.
    mkdirSync(join(home, "claude", "projects"), { recursive: true });
    writeFileSync(join(home, "claude", "projects", target.replaceAll(/[^a-zA-Z0-9]/g, "-")), "in the way");
    expect(await run("unpack", file, "--cwd", target)).toEqual(expectedRefusal(1, /is not a folder/));
    expect(existsSync(target)).toBe(false);
    expect(readdirSync(home).toSorted()).toEqual([".local", "claude", "cut"]);
    expect((await run("list")).stdout).toMatch(/^No sessions/);
    rmSync(join(home, "claude"), { recursive: true });
    expect((await run("unpack", file, "--cwd", target)).status).toBe(0);
  });

  it.each([
    ["a path that leaves the folder of the conversation", (id: string) => `conversation/${id}/../../../evil`],
    ["a path of another conversation", () => "conversation/00000000-0000-4000-8000-000000000000.jsonl"],
    ["an absolute path", () => "conversation//etc/evil"],
    ["a part that no session has", () => "etc/evil"],
    ["a second log", () => "log.jsonl"],
    ["a repository without a description", () => "work.bundle"],
  ] as const)("a file with %s is refused, and nothing of it stays", async (_, more) => {
    const sessionId = await begun();
    const parts = await partsOf((await homes.pack(sessionId)).file);
    const { home, run } = homes.another();
    const hostile = join(home, "hostile");
    await writeParts(hostile, [...parts, [more(sessionId), "x"]]);
    expect(await run("unpack", hostile, "--cwd", home)).toEqual(expectedRefusal(1, /(?:file|name): /));
    expect(readdirSync(home)).toEqual(["hostile"]);
  });

  it.each([
    ["an id that is a path", { sessionId: "../../evil" }],
    ["a state in which a turn runs", { state: '{"v":1,"turn":{}}' }],
    ["options of a newer server", { options: '{"v":99,"needs":99,"cwd":"/"}' }],
    ["a log that is longer than its state says", { state: undefined }],
  ])("a file whose description has %s is refused", async (_, change) => {
    const parts = await partsOf((await homes.pack(await begun())).file);
    const { home, run } = homes.another();
    const [[name, text], ...others] = parts as [[string, string], ...[string, string][]];
    const state = (JSON.parse(text) as { state: string }).state.replace(/"lastEventId":\d+/, '"lastEventId":2');
    const changed = JSON.stringify({
      ...(JSON.parse(text) as object),
      state,
      ...("state" in change && !change.state ? {} : change),
    });
    await writeParts(join(home, "hostile"), [[name, changed], ...others]);
    expect(await run("unpack", join(home, "hostile"), "--cwd", home)).toEqual(
      expectedRefusal(1, /file: (?:is damaged|cannot be read)/),
    );
    expect((await run("list")).stdout).toMatch(/^No sessions/);
  });

  it("a folder of the session behind a link of its repository is refused, and an empty one is made", async () => {
    const top = world.folder();
    repository(top, "begin");
    const { home, run } = homes.another();
    mkdirSync(join(home, "outside"));
    symlinkSync(join(home, "outside"), join(top, "link"));
    mkdirSync(join(top, "empty"));
    const { file } = await homes.pack(await begun(join(top, "empty")));
    const [[name, text], ...others] = (await partsOf(file)) as [TextPart, ...TextPart[]];
    await writeParts(join(home, "hostile"), [[name, text.replace('"folder":"empty"', '"folder":"link/x"')], ...others]);
    const target = join(home, "target");
    expect(await run("unpack", join(home, "hostile"), "--cwd", target)).toEqual(
      expectedRefusal(1, /file: is damaged: its folder "link\/x"/),
    );
    expect([existsSync(target), readdirSync(join(home, "outside"))]).toEqual([false, []]);
    expect((await run("unpack", file, "--cwd", target)).stdout).toContain(join(target, "empty"));
    expect(readdirSync(target)).toContain("empty");
  });

  it("a folder with other files is refused", async () => {
    const cwd = world.folder();
    repository(cwd, "begin");
    const { file } = await homes.pack(await begun(cwd));
    const { home, run } = homes.another();
    const full = mkdtempSync(join(home, "full-"));
    writeFileSync(join(full, "mine.txt"), "mine");
    expect(await run("unpack", file, "--cwd", full)).toEqual(
      expectedRefusal(1, /--cwd: .* is not the top of a repository/),
    );
    expect(readdirSync(full)).toEqual(["mine.txt"]);
  });

  it("a file that is small only because it is compressed is refused", async () => {
    const chunk = Buffer.concat([Buffer.from([0, 1, 0, 0]), Buffer.alloc(65_536)]);
    const bomb = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from("a"), ...Array<Buffer>(4_200).fill(chunk)]);
    const file = Buffer.concat([Buffer.from("claude-agents-mcp session 1\n"), gzipSync(bomb, { level: 1 })]);
    const read = async () => {
      for await (const { bytes } of readPack(Readable.from([file]))) for await (const _ of bytes);
    };
    await expect(read()).rejects.toThrow("would be too large unpacked");
  });
});
