import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../src/demo/model/server.ts";
import { type Owner, useShims } from "../kit/shim/shim.ts";
import { STAND_IN } from "../kit/world.ts";

const shims = useShims();
let model: ScriptedModel;
beforeAll(async () => {
  model = await startScriptedModel();
});
afterAll(async () => model.close());

interface Message {
  readonly type: string;
  readonly request_id?: string;
  readonly request?: { readonly subtype: string; readonly tool_name?: string };
  readonly result?: string;
}

const say = (owner: Owner, epoch: number, lineId: string, message: object) =>
  owner.send({ t: "write", id: "p", epoch, lineId }, JSON.stringify(message));
const initialize = (owner: Owner, epoch: number) =>
  say(owner, epoch, `${String(epoch)}:init`, {
    request_id: "init",
    type: "control_request",
    request: { subtype: "initialize" },
  });

/** Resolves with the first message that `fits`, and its number. */
async function find(owner: Owner, fits: (message: Message) => boolean): Promise<Message & { readonly n: number }> {
  for (let count = 1; ; count += 1) {
    const [n, text] = (await owner.hasLines(count))[count - 1]!;
    const found = JSON.parse(text) as Message;
    if (fits(found)) return { ...found, n };
  }
}

it("a turn with an open request passes from a killed owner to the next, whose answer takes effect once", async () => {
  const config = mkdtempSync(join(shims.root, "config-"));
  const cwd = mkdtempSync(join(shims.root, "work-"));
  const shim = await shims.start();
  const first = await shim.ownerProcess();
  const command = [process.execPath, STAND_IN.CLAUDE_CODE_MCP_CLAUDE_PATH, "--session-id", randomUUID()];
  const env = { ...model.environment(config), HOME: config };
  const { pid } = await first.owner.start("p", command, { env });
  initialize(first.owner, 1);
  const file = join(cwd, "written.txt");
  const script = [
    { tools: [{ name: "Write", input: { file_path: file, content: "once" } }] },
    { text: "All written." },
  ];
  const prompt = { role: "user", content: scriptTag(script) };
  say(first.owner, 1, "u1", { type: "user", uuid: randomUUID(), parent_tool_use_id: null, message: prompt });
  const asked = await find(first.owner, ({ request }) => request?.subtype === "can_use_tool");
  first.process.kill("SIGKILL");
  await first.owner.closed;

  const second = await shim.owner();
  const attached = await second.attach("p", 2, asked.n);
  expect(attached).toMatchObject({
    pid,
    open: [asked.request_id],
    written: ["1:init", "u1"],
    initialize: true,
    lost: 0,
  });
  expect(JSON.parse(attached.body)).toMatchObject({ type: "control_response", response: { request_id: "init" } });
  // Sent again, because the second owner cannot know that the prompt was written.
  say(second, 2, "u1", { type: "user", uuid: randomUUID(), parent_tool_use_id: null, message: prompt });
  for (const behavior of ["allow", "deny"]) {
    const response = {
      behavior,
      ...(behavior === "allow" ? { updatedInput: script[0]?.tools?.[0]?.input } : { message: "no" }),
    };
    const answer = { subtype: "success", request_id: asked.request_id, response };
    say(second, 2, `r:${asked.request_id ?? ""}`, { type: "control_response", response: answer });
  }
  const result = await find(second, ({ type }) => type === "result");
  expect([result.result, existsSync(file)]).toEqual(["All written.", true]);
  second.send({ t: "end-input", id: "p", epoch: 2 });
  const exit = await second.exit();
  const numbers = second.lines().map(([n]) => n);
  expect(numbers).toEqual(Array.from({ length: exit[0] - asked.n }, (_, at) => asked.n + 1 + at));
  const third = await shim.owner();
  expect((await third.attach("p", 3, exit[0])).open).toEqual([]);
});
