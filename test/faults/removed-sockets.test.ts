import { readdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { daemonStatus } from "../kit/faults/shims.ts";
import { useWorld } from "../kit/world.ts";

/** Removes the folder of the sockets under a daemon and its shim, as a logout does. */

const world = useWorld({ agent: "stand-in" });
const ARGS = ["--drain-ms", "0"];

const socketOf = (home: string, name: string) =>
  daemonStatus(home).find(({ socket }) => socket.endsWith(`/${name}.sock`))?.socket ?? "";

it("a daemon and its shim bind their sockets again after the folder was removed, and connections and turns continue", async () => {
  const HOME = world.folder();
  const daemon = await world.daemon({ name: "bound", env: { HOME }, args: ARGS });
  const client = await daemon.client();
  const prompt = scriptTag([{ text: "done", gateBefore: "bound again" }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
  const socket = socketOf(HOME, "bound");
  rmSync(dirname(socket), { recursive: true });
  await expect.poll(() => socketOf(HOME, "bound"), { timeout: 20_000, interval: 500 }).toBe(socket);
  const other = await daemon.client();
  expect(await other.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 })).toMatchObject({
    status: "running",
  });
  world.model.release("bound again");
  expect(await client.end(sessionId)).toMatchObject({ result: { result: "done" } });
  expect(daemonStatus(HOME)).toMatchObject([{ pid: daemon.pid }]);
  // The shim binds its socket again, too: the next daemon continues the turn.
  const isShim = (file: string) => file.endsWith(".shim");
  await expect.poll(() => readdirSync(dirname(socket)).filter(isShim), { timeout: 20_000 }).toHaveLength(1);
  const last = { sessionId, prompt: scriptTag([{ text: "last", gateBefore: "killed" }]) };
  await client.call("claude_code_reply", last);
  await daemon.end("SIGKILL");
  const next = await world.daemon({ name: "bound", env: { HOME }, args: ARGS });
  world.model.release("killed");
  await expect.poll(async () => client.end(sessionId).catch(String)).toMatchObject({ result: { result: "last" } });
  await Promise.all([client.close(), other.close()]);
  await next.close();
});
