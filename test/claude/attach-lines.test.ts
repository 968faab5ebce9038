/** Single lines during a change of owners (attach.test.ts): open requests, and lost or doubled lines. */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, it } from "vitest";

import type { JsonObject } from "../../src/domain/json.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../src/demo/model/server.ts";
import { inner, type LineFilter } from "../kit/attach/kept-claude.ts";
import { allow, Owner } from "../kit/attach/owner.ts";
import { bash, MCP_SERVER, newSetting } from "../kit/attach/setting.ts";

let model: ScriptedModel;
beforeAll(async () => {
  model = await startScriptedModel();
});
afterAll(async () => model.close());

const isInitialize = (line: JsonObject) => inner(line).subtype === "initialize";

const withoutHooks: LineFilter = (line) =>
  isInitialize(line) ? { ...line, request: { ...inner(line), hooks: undefined } } : line;

/** Script of a turn whose command appends `RAN_ONCE` each time it runs. */
const RUN = [{ tools: [bash("echo ran >> ran.txt")] }, { text: "Ran." }];
const RAN_ONCE = "ran\n";

describe.concurrent("open requests of Claude Code", () => {
  it("a permission request is asked once, though the next owner reads its line again", async ({
    expect,
    onTestFinished,
  }) => {
    const { cwd, kept, options } = newSetting(model, onTestFinished);
    const first = new Owner(kept, { options });
    await first.say(scriptTag(RUN));
    const open = await first.until(({ asked }) => asked[0]);
    kept.leave(0);

    const second = new Owner(kept, { options });
    await kept.answer("initialize");
    await second.until(({ kinds }) => (kinds.includes("system/background_tasks_changed") ? true : undefined));
    expect(second.asked).toMatchObject([{ requestId: open.requestId, toolUseID: open.toolUseID }]);
    expect(second.messages.slice(0, first.messages.length).map(bare)).toEqual(first.messages.map(bare));
    kept.leave();

    const third = new Owner(kept, { options, ask: allow });
    expect(await third.result()).toEqual(["Ran."]);
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe(RAN_ONCE);
  });

  it("an MCP elicitation reaches no new owner until its line is handed on", async ({ expect, onTestFinished }) => {
    const { kept, options: bare } = newSetting(model, onTestFinished);
    const options = { ...bare, mcpServers: MCP_SERVER, allowedTools: ["mcp__mini__question", "mcp__mini__ping"] };
    const first = new Owner(kept, { options });
    await first.say(scriptTag([{ tools: [{ name: "mcp__mini__question", input: {} }] }, { text: "Answered." }]));
    await first.until(({ elicited }) => elicited[0]);
    kept.leave();

    const elicit = () => ({ action: "accept" as const, content: { colour: "blue" } });
    const second = new Owner(kept, { options, elicit });
    const answer = await kept.answer("initialize");
    expect(answer).toMatchObject({ response: { session_state: "requires_action" }, pending_permission_requests: [] });
    expect(answer).not.toHaveProperty("pending_elicitation_requests");
    await (await second.query).mcpServerStatus();
    expect(second.elicited).toEqual([]);
    kept.hand(await kept.request("elicitation"));
    expect(await second.result()).toEqual(["Answered."]);
    expect(second.elicited).toMatchObject([{ serverName: "mini", message: "Which colour?" }]);
    expect(JSON.stringify(second.messages)).toContain(
      String.raw`answered {\"action\":\"accept\",\"content\":{\"colour\":\"blue\"}}`,
    );
  });

  it("a hook request goes to the next owner, unless its `initialize` has hooks: then the tool does not run", async ({
    expect,
    onTestFinished,
  }) => {
    const { cwd, kept, options } = newSetting(model, onTestFinished);
    const first = new Owner(kept, { options, hook: () => undefined });
    await first.say(scriptTag([...RUN.slice(0, 1), { tools: [bash("echo again")] }, { text: "Ran." }]));
    await first.until(({ hooked }) => hooked[0]);
    kept.leave();

    const answerTwo = ({ length }: readonly string[]) => (length > 2 ? undefined : {});
    const second = new Owner(kept, { options, hook: answerTwo, ask: allow, outwards: withoutHooks });
    await kept.answer("initialize");
    kept.hand(await kept.request("hook_callback"));
    expect(await second.result()).toEqual(["Ran."]);
    expect(second.hooked).toEqual(["Bash", "Bash"]);
    await second.say(scriptTag(RUN));
    await second.until(({ hooked }) => hooked[2]);
    const { request_id: id } = await kept.request("hook_callback");
    kept.leave();

    const third = new Owner(kept, { options, hook: () => ({}), ask: allow });
    expect(await third.result()).toEqual(["Ran."]);
    expect(kept.lines).toContainEqual({ type: "control_cancel_request", request_id: id });
    expect(JSON.stringify(third.messages)).toContain("so this tool call was not executed. No one denied it; retry");
    expect({ hooked: third.hooked, asked: third.asked }).toEqual({ hooked: [], asked: [] });
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe(RAN_ONCE);
  });

  it("a request withdrawn between two owners is not asked again", async ({ expect, onTestFinished }) => {
    const { cwd, kept, options } = newSetting(model, onTestFinished);
    const first = new Owner(kept, { options });
    await first.say(scriptTag(RUN));
    const { requestId } = await first.until(({ asked }) => asked[0]);
    const query = await first.query;
    void query.interrupt();
    await kept.until(({ written }) => written.find((line) => inner(line).subtype === "interrupt"));
    const left = kept.lines.length;
    kept.leave(left);
    await kept.line(({ type }) => type === "result", left);
    expect(kept.lines).toContainEqual({ type: "control_cancel_request", request_id: requestId });

    const second = new Owner(kept, { options });
    expect(await second.result()).toEqual(["error_during_execution"]);
    expect(await kept.answer("initialize")).toMatchObject({ pending_permission_requests: [] });
    expect(second.asked).toEqual([]);
    kept.leave(0);
    // An owner that reads both the request and its `control_cancel_request` aborts the request.
    const third = new Owner(kept, { options });
    await third.result();
    expect(third.asked).toMatchObject([{ requestId, signal: { aborted: true } }]);
    expect(existsSync(join(cwd, "ran.txt"))).toBe(false);
  });

  it("a request is answered even by an owner whose `initialize` does not reach Claude Code", async ({
    expect,
    onTestFinished,
  }) => {
    const { cwd, kept, options: bare } = newSetting(model, onTestFinished);
    const options = { ...bare, mcpServers: MCP_SERVER };
    const first = new Owner(kept, { options, hook: () => ({}) });
    await first.say(scriptTag(RUN));
    await first.until(({ asked }) => asked[0]);
    kept.leave();

    const former = await kept.answer("initialize");
    const outwards: LineFilter = (line) => {
      if (!isInitialize(line)) return line;
      kept.hand({ type: "control_response", response: { ...former, request_id: line["request_id"] } });
      return undefined;
    };
    const second = new Owner(kept, { options, hook: () => ({}), ask: allow, outwards });
    await (await second.query).initializationResult();
    kept.hand(await kept.request("can_use_tool"));
    expect(await second.result()).toEqual(["Ran."]);
    await second.say(scriptTag(RUN));
    expect(await second.result(2)).toEqual(["Ran.", "Ran."]);
    expect(second.hooked).toEqual(["Bash"]);
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe(RAN_ONCE + RAN_ONCE);
  });
});

describe.concurrent("a change of owners", () => {
  it("a prompt or an answer that is written twice counts once", async ({ expect, onTestFinished }) => {
    const { cwd, kept, options } = newSetting(model, onTestFinished);
    const first = new Owner(kept, { options });
    const prompt = [scriptTag(RUN), randomUUID()] as const;
    await first.say(...prompt);
    await first.until(({ asked }) => asked[0]);
    kept.leave();

    const second = new Owner(kept, { options, ask: allow });
    await second.say(...prompt);
    const answer = await kept.until(({ written }) => written.find(({ type }) => type === "control_response"));
    kept.write(answer);
    await second.result();
    await second.say(...prompt);
    kept.write(answer);
    // A prompt sent twice during a turn counts once, too.
    const gate = randomUUID();
    await second.say(scriptTag([{ gateBefore: gate, text: "Slow." }]));
    await model.waitForRequest(({ lastUserText }) => lastUserText.includes(gate));
    const queued = [scriptTag([{ text: "Queued." }]), randomUUID()] as const;
    await second.say(...queued);
    await second.say(...queued);
    model.release(gate);
    await second.result(3);
    await second.say(scriptTag([{ text: "Last." }]));
    expect(await second.result(4)).toEqual(["Ran.", "Slow.", "Queued.", "Last."]);
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe(RAN_ONCE);
  });

  it("the next owner ignores answers to the former owner, and repeats its requests", async ({
    expect,
    onTestFinished,
  }) => {
    const { kept, options } = newSetting(model, onTestFinished);
    const first = new Owner(kept, { options });
    await first.say(scriptTag([{ gateBefore: randomUUID(), text: "Never." }]));
    await kept.line(({ subtype }) => subtype === "init");
    const former = await first.query;
    void former.setModel("sonnet");
    const { request_id: id } = await kept.until(({ written }) =>
      written.find((line) => inner(line).subtype === "set_model"),
    );
    const left = kept.lines.length;
    kept.leave(left);
    await kept.line((line) => inner(line).request_id === id, left);

    const second = new Owner(kept, { options });
    const query = await second.query;
    for (const _ of ["once", "twice"]) {
      await query.setModel("haiku");
      expect(await query.interrupt()).toEqual({ still_queued: [] });
    }
    expect(await second.result()).toEqual(["error_during_execution"]);
    await second.say(scriptTag([{ text: "Hello." }]));
    expect(await second.result(2)).toEqual(["error_during_execution", "Hello."]);
    const init = second.messages.findLast((message) => message.type === "system" && message.subtype === "init");
    expect(init).toMatchObject({ model: expect.stringContaining("haiku") });
    expect(second.failure).toBeUndefined();
  });

  it("an owner that comes during the start gets all lines from the beginning", async ({ expect, onTestFinished }) => {
    const { cwd, kept, options } = newSetting(model, onTestFinished);
    const first = new Owner(kept, { options, hook: () => ({}) });
    await kept.until(({ written }) => written.find(isInitialize));
    kept.leave(0);

    const second = new Owner(kept, { options, hook: () => ({}), ask: allow, outwards: withoutHooks });
    await second.say(scriptTag(RUN));
    expect(await second.result()).toEqual(["Ran."]);
    expect({ hooked: second.hooked, former: [...first.hooked, ...first.messages] }).toEqual({
      hooked: ["Bash"],
      former: [],
    });
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe(RAN_ONCE);
  });

  it("lost parts of a streamed text do no harm", async ({ expect, onTestFinished }) => {
    const { kept, options: bare } = newSetting(model, onTestFinished);
    const options = { ...bare, includePartialMessages: true };
    const first = new Owner(kept, { options });
    const gate = randomUUID();
    await first.say(
      scriptTag([
        { tools: [bash("touch made")], text: ["One", " two"] },
        { gate, text: ["Three", " four"] },
      ]),
    );
    await first.until(({ asked }) => asked[0]);
    kept.leave();

    const evicting: LineFilter = (line) => (line["type"] === "stream_event" ? undefined : line);
    const second = new Owner(kept, { options, ask: allow, inwards: evicting });
    await second.until(({ kinds }) => (kinds.includes("user") ? true : undefined));
    kept.leave();
    const third = new Owner(kept, { options });
    model.release(gate);
    expect(await third.result()).toEqual(["Three four"]);
    expect(third.kinds).toContain("stream_event");
    expect(third.kinds.filter((kind) => kind === "assistant")).toHaveLength(1);
    expect([second.failure, third.failure]).toEqual([undefined, undefined]);
  });

  it("an owner that fails ends nothing, and the next owner continues", async ({ expect, onTestFinished }) => {
    const { cwd, kept, options: bare } = newSetting(model, onTestFinished);
    const options = { ...bare, mcpServers: MCP_SERVER };
    const first = new Owner(kept, { options });
    await first.say(scriptTag(RUN));
    await first.until(({ asked }) => asked[0]);
    kept.leave();

    const outwards: LineFilter = (line) => {
      if (!isInitialize(line)) return line;
      kept.hand({
        type: "control_response",
        response: { subtype: "success", request_id: line["request_id"], response: {} },
      });
      return undefined;
    };
    const second = new Owner(kept, { options, outwards });
    await second.until(({ failure }) => failure);
    expect(String(second.failure)).toContain("too old to read MCP servers from the initialize request");
    expect(kept.attempts).toEqual(["end", "SIGTERM"]);
    kept.leave();
    const third = new Owner(kept, { options, ask: allow });
    expect(await third.result()).toEqual(["Ran."]);
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe(RAN_ONCE);
  });
});

/** Removes `_line`, which differs between owners. */
const bare = (message: object) => ({ ...message, _line: undefined });
