import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { firstLine, PROTOCOL, type ClientHello, type DaemonHello } from "../../src/daemon/wire.ts";
import { RefusedError, SettingsError } from "../../src/proxy/failures.ts";
import { greet, buildHello } from "../../src/proxy/greet.ts";

/** First messages between `greet` and a daemon. */

let [root, server]: [string, Server | undefined] = ["", undefined];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "ccm-greet-"));
  chmodSync(root, 0o700);
});
afterEach(() => {
  server?.close();
  rmSync(root, { recursive: true });
});

/** Starts a daemon that replies with `answer`; `hello` resolves to the first line of the client. */
async function daemon(answer: Partial<DaemonHello>): Promise<{ hello: Promise<ClientHello> }> {
  const connected = createServer();
  server = connected;
  const hello = once(connected, "connection").then(async (given) => {
    const [socket] = given as [Socket];
    const line = await firstLine(socket, 5_000);
    socket.write(`${JSON.stringify({ protocol: PROTOCOL, pid: 1, version: "1.2.3", ...answer })}\n`);
    return JSON.parse(line) as ClientHello;
  });
  connected.listen(join(root, "n.sock"));
  await once(connected, "listening");
  return { hello };
}

const meet = async (argv: string[]) => greet({ folders: [root], name: "n", hello: buildHello(argv) }, 5_000);

it("a client sends its arguments, its whole environment, its folder and the text of its configuration file", async () => {
  const { hello } = await daemon({});
  writeFileSync(join(root, "own.json"), '{"maxDepth": 2}');
  const socket = await meet(["--config", join(root, "own.json")]);
  const { argv, configFile, cwd, environment } = await hello;
  expect([argv, configFile, cwd]).toEqual([
    ["--config", join(root, "own.json")],
    { text: '{"maxDepth": 2}' },
    process.cwd(),
  ]);
  expect(environment).toEqual({ ...process.env });
  socket.destroy();
});

it("an unreadable configuration file is sent as a fault, for the daemon to report", () => {
  const { configFile } = buildHello(["--config", join(root, "none.json")]);
  expect(configFile).toEqual({ fault: expect.stringContaining("ENOENT") as string });
});

it("a daemon of another protocol is reported with both numbers and the remedy, as a `SettingsError`", async () => {
  await daemon({ protocol: 1, refused: "protocol 2 is not spoken here, only 1" });
  const failure: unknown = await meet([]).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(SettingsError);
  expect(String(failure)).toContain(
    `the client speaks protocol ${String(PROTOCOL)}, and this daemon 1. Stop the daemon`,
  );
});

it.each<[string, Partial<DaemonHello>, boolean]>([
  ["for the client's own settings", { refused: "--x is bad.", isOfClient: true }, true],
  ["for another reason", { refused: "too many clients" }, false],
])("a client that is refused %s gets the right class of error", async (_, answer, isOwn) => {
  await daemon(answer);
  const failure: unknown = await meet([]).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RefusedError);
  expect(failure instanceof SettingsError).toBe(isOwn);
});
