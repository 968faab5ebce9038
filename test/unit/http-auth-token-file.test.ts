import { execFile } from "node:child_process";
import { chmod, chown, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { build } from "rolldown";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { OPERATOR as OPERATOR_CALLER } from "../../src/domain/principal.ts";
import { digestOf, newToken } from "../../src/http/auth/http-token.ts";
import { makeToken } from "../../src/http/auth/token-file.ts";
import { AuthSetup, send } from "../kit/servers/http-auth.ts";

const sha256 = (token: string) => digestOf(token).toString("hex");
const OPERATOR = { caller: OPERATOR_CALLER, kind: "token" };
/** Windows has no permission bits. */
const onWindows = process.platform === "win32";

let setup: AuthSetup;
beforeEach(async () => void (setup = await AuthSetup.make()));
afterEach(async () => {
  vi.useRealTimers();
  await setup.close();
});

async function put(text: string, mode = 0o600): Promise<string> {
  const file = join(setup.folder, "given");
  await writeFile(file, text);
  await chmod(file, mode);
  return file;
}

describe("the operator's token", () => {
  it("the operator's token is created at the first start, allows everything, and is kept at the next start", async () => {
    const first = await setup.open();
    expect(first.made).toEqual({ file: setup.tokenFile, token: expect.stringMatching(/^ccm_[\w-]{43}$/) });
    expect(await readFile(setup.tokenFile, "utf8")).toBe(`${first.made!.token}\n`);
    expect(await readdir(dirname(setup.tokenFile))).toEqual(["http-token"]);
    const second = await setup.open();
    expect(second.made).toBeUndefined();
    for (const server of [first, second]) expect(await send(server, first.made!.token)).toEqual(OPERATOR);
    expect(setup.logged).toEqual([]);
  });

  it.skipIf(onWindows)("the operator's token is readable only by its owner", async () => {
    await setup.open();
    expect((await stat(setup.tokenFile)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(setup.tokenFile))).mode & 0o777).toBe(0o700);
  });

  it("the operator's token is created once by servers that start at the same time", async () => {
    const servers = await Promise.all(Array.from({ length: 20 }, async () => setup.open()));
    const made = servers.flatMap((server) => server.made ?? []);
    expect(made).toHaveLength(1);
    const answers = await Promise.all(servers.map(async (server) => send(server, made[0]!.token)));
    expect(answers).toEqual(servers.map(() => OPERATOR));
    expect(await readdir(dirname(setup.tokenFile))).toEqual(["http-token"]);
  });

  it("the operator's token is created once by processes that start at the same time", async () => {
    const script =
      "const { makeToken } = await import(process.argv[1]); console.log(await makeToken(process.argv[2]));";
    // Bundles `token-file.ts`, because Node 20 cannot run TypeScript.
    const bundle = join(setup.folder, "token-file.mjs");
    await build({
      input: "src/http/auth/token-file.ts",
      platform: "node",
      output: { file: bundle },
      logLevel: "silent",
    });
    const run = async () =>
      promisify(execFile)(process.execPath, ["--input-type=module", "-e", script, bundle, setup.tokenFile]);
    const said = (await Promise.all([run(), run(), run(), run()])).map(({ stdout }) => stdout.trim());
    const made = said.filter((line) => line !== "undefined");
    expect(made).toHaveLength(1);
    expect(await readFile(setup.tokenFile, "utf8")).toBe(`${made[0]!}\n`);
  });

  it("a new token never replaces an existing file", async () => {
    await mkdir(dirname(setup.tokenFile));
    await writeFile(setup.tokenFile, "", { mode: 0o600 });
    expect(await makeToken(setup.tokenFile)).toBeUndefined();
    expect(await readFile(setup.tokenFile, "utf8")).toBe("");
  });

  it("the server does not start if its token cannot be stored", async () => {
    await writeFile(join(setup.folder, "state"), "a file where the folder should be");
    expect(await setup.refusal({})).toMatch(
      /^The token of this server cannot be stored in .*http-token: .*(EEXIST|ENOTDIR).* with --token-file\.$/,
    );
  });

  it("the operator may choose a token of 32 characters", async () => {
    const token = "0123456789abcdef0123456789abcdef";
    const server = await setup.open({ tokenFile: await put(`\n${token}\r\n`) });
    expect(server.made).toBeUndefined();
    expect(await send(server, token)).toEqual(OPERATOR);
  });

  it.each<[string, string, RegExp]>([
    ["empty", " \n", /^The token file .*given is empty\. Create one with `claude-agents-mcp token`\.$/],
    ["too short", "s3cret", /^The token in .*given is too short: at least 32 characters\./],
    ["made of two tokens", `${newToken()}\n${newToken()}`, /^.*given must contain one token of letters, digits and/],
    ["too large", "a".repeat(9_000), /^.*given is not a regular file\. Name a file that contains the token\.$/],
  ])("the operator's token is refused if its file is %s", async (_, text, message) => {
    const refusal = await setup.refusal({ tokenFile: await put(text) });
    expect(refusal).toMatch(message);
    expect(refusal).not.toContain("s3cret");
  });

  it("a missing token file, or a folder in its place, is refused, and no file is created", async () => {
    const tokenFile = join(setup.folder, "misspelt");
    expect(await setup.refusal({ tokenFile })).toMatch(/^The token file .*misspelt cannot be read: .*ENOENT/);
    expect(await setup.refusal({ tokenFile: setup.folder })).toMatch(
      /is not a regular file\. Name a file that contains the token\.$/,
    );
    expect(await readdir(setup.folder)).toEqual([]);
  });

  it.skipIf(onWindows).each([0o640, 0o604, 0o620, 0o602, 0o644, 0o777])(
    "the operator's token is refused if its file has mode %o",
    async (mode) => {
      const tokenFile = await put(newToken(), mode);
      const message =
        /^The token file .*given is readable by other users\. Run chmod 600 on it, and replace the token\.$/;
      expect(await setup.refusal({ tokenFile })).toMatch(message);
      const link = join(setup.folder, "link");
      await symlink(tokenFile, link);
      expect(await setup.refusal({ tokenFile: link })).toMatch(/is readable by other users/);
    },
  );
});

describe("a token file that a session can have written", () => {
  it("a token file is refused inside a folder that sessions may use, under each of its names", async () => {
    const tokenFile = await put(newToken());
    const link = join(dirname(setup.folder), `link-${basename(setup.folder)}`);
    await symlink(setup.folder, link);
    for (const [folder, file] of [
      [setup.folder, tokenFile],
      [link, tokenFile],
      [setup.folder, join(link, "given")],
    ] as const) {
      const refusal = await setup.refusal({ tokenFile: file, workFolders: [folder] });
      expect(refusal).toMatch(/^--token-file: .*given is in .*, where sessions can have written it\./);
    }
    await rm(link);
    // The state folder is closed to sessions even inside `workFolders`.
    expect((await setup.open({ workFolders: [setup.folder] })).made).toMatchObject({ file: setup.tokenFile });
  });

  const isRoot = process.getuid?.() === 0;
  it.runIf(isRoot)("a token file of another user of the system is refused", async () => {
    const tokenFile = await put(newToken());
    await chown(tokenFile, 4_242, 4_242);
    expect(await setup.refusal({ tokenFile })).toMatch(/given belongs to another user\. Change its owner/);
  });
});

describe("a token file that changes", () => {
  let now = 1_800_000_000_000;
  const later = (ms: number) => vi.setSystemTime((now += ms));
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now }));

  it("a changed token file revokes its token within 1 s, and the new token is valid after the next start", async () => {
    const [before, after] = [newToken(), newToken()];
    const tokenFile = await put(before);
    const server = await setup.open({ tokenFile });
    await put(after);
    later(999);
    expect(await send(server, before)).toEqual(OPERATOR);
    later(1);
    for (const token of [before, after]) expect(await send(server, token)).toMatchObject({ status: 401 });
    expect(setup.logged).toEqual([expect.stringMatching(/^the token file has changed/)]);
    const next = await setup.open({ tokenFile });
    expect(await send(next, after)).toEqual(OPERATOR);
    expect(await send(next, before)).toMatchObject({ status: 401 });
  });

  it("a token file is checked again after the clock was set back", async () => {
    const [before, after] = [newToken(), newToken()];
    const server = await setup.open({ tokenFile: await put(before) });
    await put(after);
    later(-3_600_000);
    expect(await send(server, before)).toMatchObject({ status: 401 });
  });

  it.each<[string, (file: string) => Promise<void>]>([
    ["goes away", async (file) => rm(file)],
    ["is emptied", async () => void (await put(""))],
    ...(onWindows ? [] : [openedToOthers()]),
  ])("a token file that %s admits no one until it holds the same token again", async (_, spoil) => {
    const [before, other, named] = [newToken(), newToken(), newToken()];
    const tokenFile = await put(before);
    const principals = { ada: { tokenSha256: sha256(named), scopes: ["read"] as const } };
    const server = await setup.open({ tokenFile, principals });
    await spoil(tokenFile);
    later(1_000);
    expect(await send(server, before)).toMatchObject({ status: 401 });
    later(1_000);
    expect(await send(server, before)).toMatchObject({ status: 401 });
    expect(await send(server, named)).toMatchObject({ kind: "token", caller: { principal: "ada" } });
    expect(setup.logged).toEqual([expect.stringMatching(/^the token file cannot be used/)]);
    await put(other);
    later(1_000);
    expect(await send(server, other)).toMatchObject({ status: 401 });
    await put(before);
    later(1_000);
    expect(await send(server, before)).toEqual(OPERATOR);
    for (const token of [before, other]) expect(setup.logged.join("\n")).not.toContain(token);
  });

  function openedToOthers(): [string, (file: string) => Promise<void>] {
    return ["is opened to others", async (file) => chmod(file, 0o644)];
  }
});
