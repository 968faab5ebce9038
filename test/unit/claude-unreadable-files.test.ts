import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkUserSettings } from "../../src/claude/sandbox/user-settings.ts";
import { findSession, findOpenProcess } from "../../src/claude/folder/find.ts";
import { readLastFolder, findPrompts, findTranscript } from "../../src/claude/folder/transcript.ts";
import { isTrusted } from "../../src/claude/folder/trust.ts";
import { splitForSpare } from "../../src/claude/spares/spec.ts";
import { readSmall } from "../../src/security/files/plain-file.ts";
import { readOnlyGit } from "../../src/security/git/read-only-git.ts";

const ID = "01234567-89ab-4cde-8f01-23456789abcd";

let root = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "odd-files-")));
  for (const folder of ["projects/one", "sessions"]) mkdirSync(join(root, folder), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const transcript = () => join(root, "projects/one", `${ID}.jsonl`);
const MESSAGE = `{"type":"user","cwd":"/here","uuid":"a-prompt"}\n`;

describe.skipIf(process.platform === "win32")("a pipe without a writer in place of a file", () => {
  const pipe = (path: string) => {
    execFileSync("sh", ["-c", `mkfifo "$1"`, "sh", join(root, path)]);
  };

  it("a pipe in place of a transcript blocks no reader", async () => {
    pipe(`projects/one/${ID}.jsonl`);
    expect(await findSession(ID, root)).toBeUndefined();
    await expect(findPrompts(transcript(), ["a-prompt"])).rejects.toThrow("is not a regular file");
  });

  it("a pipe in place of the record of an open session blocks no reader", async () => {
    pipe("sessions/1.json");
    expect(await findOpenProcess(ID, root)).toBeUndefined();
  });

  it("a pipe in place of the record of trust blocks no reader", async () => {
    pipe(".claude.json");
    const environment = { CLAUDE_CONFIG_DIR: root };
    expect(await isTrusted(root, { trustDirs: [], trustsRecord: true }, environment)).toBe(false);
    const split = await splitForSpare({ principal: "local", wrapper: [], record: {} }, { cwd: root, env: environment });
    expect(split?.claim.cwd).toBe(root);
  });

  it("a pipe in place of the user's settings blocks no reader, and a sandbox refuses it", async () => {
    await expect(checkUserSettings(root)).resolves.toBeUndefined();
    pipe("settings.json");
    await expect(checkUserSettings(root)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("a pipe in place of the alternates of a repository blocks no reader", async () => {
    execFileSync("git", ["init", "-q"], { cwd: root });
    pipe(".git/objects/info/alternates");
    const environment = { PATH: process.env["PATH"] ?? "" };
    expect(await readOnlyGit({ cwd: root, environment, wrapper: [], allowed: [] })).toMatch(/is not a regular file/);
  });
});

describe("a file that is too large", () => {
  it("a file above the limit is not read", async () => {
    const file = join(root, "settings.json");
    writeFileSync(file, "12345678");
    expect(await readSmall(file, 8)).toBe("12345678");
    await expect(readSmall(file, 7)).rejects.toThrow("holds more than 7 bytes");
    truncateSync(file, 2 ** 30);
    await expect(checkUserSettings(root)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("a transcript with one huge line is refused, and does not end the server", async () => {
    writeFileSync(transcript(), MESSAGE);
    expect(await findTranscript(ID, root)).toBe(transcript());
    expect(await findPrompts(transcript(), ["a-prompt", "another"])).toEqual(new Set(["a-prompt"]));
    expect(await readLastFolder(transcript())).toBe("/here");
    truncateSync(transcript(), 2 ** 30);
    expect(await findTranscript(ID, root)).toBe(transcript());
    await expect(findPrompts(transcript(), ["a-prompt"])).rejects.toThrow("without a line break");
    await expect(findSession(ID, root)).rejects.toThrow("without a line break");
    truncateSync(transcript(), 0);
    truncateSync(transcript(), 2 ** 30);
    expect(await findTranscript(ID, root)).toBeUndefined();
  });
});
