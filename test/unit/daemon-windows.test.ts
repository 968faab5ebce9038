import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { existingFolders, createPrivateFolder, socketFolders } from "../../src/daemon/socket-folders.ts";
import { bind, connectByName, isNotListening, listSockets, removeDeadSockets } from "../../src/daemon/socket.ts";
import { logPath, startDaemon } from "../../src/daemon/start-daemon.ts";
import { acquireStartMutex } from "../../src/daemon/start-mutex.ts";

/**
 * Tests the Windows code of the daemon on other systems, with the calls of Node unchanged: there the name of a pipe is a file
 * in the working directory, and the list of pipes is a folder.
 */

const before = process.cwd();
let root: string;
let folders: string[];
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "ccm-windows-"));
  process.chdir(root);
  folders = await socketFolders(join(root, "state"), "win32");
});
afterEach(() => {
  process.chdir(before);
  rmSync(root, { recursive: true, force: true });
});

it("a pipe is named for the state folder, and no folder is made or checked", async () => {
  expect(folders).toEqual([expect.stringMatching(/^\\\\\.\\pipe\\claude-agents-mcp-[0-9a-f]{16}-$/)]);
  expect(await socketFolders(join(root, "other"), "win32")).not.toEqual(folders);
  expect(await existingFolders(folders)).toEqual(folders);
  await createPrivateFolder(folders[0]!);
  expect(existsSync(folders[0]!)).toBe(false);
});

it("a name belongs to one daemon, clients reach the daemon by name, and its end leaves no pipe", async () => {
  const server = createServer();
  const naming = { folders, name: "n", mayDisplace: true };
  const { path, release } = await bind(server, naming);
  expect(path).toBe(`${folders[0]!}n.sock`);
  await expect(bind(createServer(), naming)).rejects.toThrow('Another daemon has the name "n"');
  (await connectByName(folders, "n")).destroy();
  await removeDeadSockets(folders);
  await release();
  server.close();
  const failure: unknown = await connectByName(folders, "n").catch((error: unknown) => error);
  expect(isNotListening(failure)).toBe(true);
});

it("daemons are found in the list of all pipes", async () => {
  const list = String.raw`\\.\pipe` + "\\";
  mkdirSync(list);
  const own = folders[0]!.slice(list.length);
  for (const pipe of [`${own}one.sock`, `${own}one.starting`, "claude-agents-mcp-0000-two.sock", "other"]) {
    writeFileSync(join(list, pipe), "");
  }
  expect(await listSockets(folders)).toEqual([{ name: "one", path: `${folders[0]!}one.sock` }]);
});

it("one client at a time gets the turn to start the daemon; the others wait for its end", async () => {
  const endTurn = await acquireStartMutex(folders, "n", 5_000);
  expect(await acquireStartMutex(folders, "n", 50)).toBeUndefined();
  endTurn?.();
  const next = await acquireStartMutex(folders, "n", 5_000);
  expect(next).toBeTypeOf("function");
  next?.();
});

it("a daemon is started without a shell, writes to its log, and reports readiness or the cause of failure", async () => {
  const main = join(root, "main.mjs");
  vi.stubEnv("TZ", "UTC").stubEnv("FOO", "bar");
  const begin = async (code: string) => {
    writeFileSync(main, `import { writeSync } from "node:fs";\n${code}`);
    return startDaemon({ name: "n", words: ["--spares", "2"], main, ms: 15_000, platform: "win32", stateFolder: root });
  };
  const name = await begin(
    'console.error(process.argv.slice(2).join(" "), process.env.TZ, process.env.FOO); writeSync(3, "ready other\\n");',
  );
  expect(name).toBe("other");
  expect(readFileSync(logPath(root, "n"), "utf8")).toBe("daemon run --ready-fd 3 --spares 2 UTC undefined\n");
  await expect(begin('console.error("claude-agents-mcp: no luck"); process.exit(3);')).rejects.toThrow("no luck");
  vi.unstubAllEnvs();
});
