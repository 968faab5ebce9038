import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { stream } from "./streaming.ts";
import { createWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(async () => world.close());

const CONFIGURE = "claude_code_configure";

it("the bypass gate is switched by `action` of `claude_code_configure` while the server runs: for every new turn, not for one that runs", async () => {
  const server = await world.server({ args: ["--toolsets", "agent,configure"], env: { IS_SANDBOX: "1" } });
  const change = async (action: string) => (await stream(server, CONFIGURE, { action })).data;
  const start = { cwd: world.folder(), permissionMode: "bypassPermissions", waitMs: 40_000 };
  const ran = join(start.cwd, "ran.txt");
  const run = { tools: [{ name: "Bash", input: { command: `touch ${ran}` } }], gateBefore: "gate is closed" };
  const prompt = scriptTag([run, { text: "ok" }]);

  expect(await change("get_config")).toEqual({
    allowBypass: false,
    message: expect.stringContaining("refused") as string,
  });
  expect(await server.refusal("claude_code", { prompt, ...start })).toMatchObject({ code: "PERMISSION_DENIED" });
  expect(await change("enable_bypass")).toMatchObject({ allowBypass: true });
  const { sessionId } = await server.call("claude_code", { prompt, ...start, waitMs: 0 });
  const off = await change("disable_bypass");
  expect(off).toMatchObject({ allowBypass: false });
  expect(off["message"]).toContain("already goes on");
  world.model.release("gate is closed");
  expect(await server.end(sessionId)).toMatchObject({ status: "idle", result: { result: "ok", isError: false } });
  expect(existsSync(ran)).toBe(true);
  expect(await server.refusal("claude_code_reply", { sessionId, prompt })).toMatchObject({ code: "PERMISSION_DENIED" });
  expect(await change("get_config")).toMatchObject({ allowBypass: false });
  expect(await server.refusal(CONFIGURE, { action: "bypass" })).toMatchObject({ code: "INVALID_ARGUMENT" });
  const audit = server
    .stderr()
    .split("\n")
    .filter((line) => line.includes("audit"));
  expect(audit.map((line) => JSON.parse(line) as object)).toMatchObject([
    { allowed: true, before: false, principal: "local" },
    { allowed: false, before: true, principal: "local" },
  ]);
});

it("is not there unless the operator lists it, and an unknown toolset stops the server with one line", async () => {
  const { tools } = await (await world.server()).client.listTools();
  expect(tools.map(({ name }) => name)).not.toContain(CONFIGURE);
  const wrong = spawnSync(process.execPath, ["dist/cli/main.js", "serve", "--toolsets", "configuer"]);
  expect(wrong.stderr.toString()).toMatch(/^.*--toolsets is \["configuer"\]: must be some of agent, query, .*\n$/);
  expect(wrong.status).toBe(2);
});
