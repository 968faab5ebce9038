/**
 * A running Claude Code changes hands: a second Agent SDK continues at its pipes after the first is cut off. Tests only Claude
 * Code and the Agent SDK, without our server, which relies on the behavior.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { prewarm, type Options, type SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { afterAll, beforeAll, describe, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../src/demo/model/server.ts";
import { allow, Owner, type Start } from "../kit/attach/owner.ts";
import { bash, everyOption, newSetting, type Setting, write } from "../kit/attach/setting.ts";

let model: ScriptedModel;
beforeAll(async () => {
  model = await startScriptedModel();
});
afterAll(async () => model.close());

const hook = () => ({});

interface Beginning {
  readonly options: Options;
  readonly start?: Start;
}

/** Runs a turn of a session and ends its process; returns options to `resume` the session. */
async function runFormerProcess({ kept, ...setting }: Setting): Promise<Options> {
  const { sessionId = "", ...options } = everyOption({ kept, ...setting });
  const owner = new Owner(kept, { options: { ...options, sessionId } });
  await owner.say(scriptTag([{ text: "Before." }]));
  await owner.result();
  await kept.close();
  return { ...options, resume: sessionId };
}

const asSpare: Start = async ({ options: { cwd = "", ...options }, prompt }) => {
  const spare = await prewarm({ options });
  const query = spare.claim({ prompt, options: { cwd } });
  await spare.claimed;
  return query;
};

describe.concurrent("changes of owners, with a request open and idle", () => {
  it.for<[string, (setting: Setting) => Beginning | Promise<Beginning>]>([
    ["when it was started for its session", (setting) => ({ options: everyOption(setting) })],
    ["when it was kept as a spare", (setting) => ({ options: everyOption(setting), start: asSpare })],
    ["when it was resumed", async (setting) => ({ options: await runFormerProcess(setting) })],
    [
      "when it was forked",
      async (setting) => ({
        options: { ...(await runFormerProcess(setting)), forkSession: true, sessionId: randomUUID() },
      }),
    ],
  ])("a Claude Code changes hands %s", async ([, begin], { expect, onTestFinished }) => {
    const setting = newSetting(model, onTestFinished);
    const { cwd, kept } = setting;
    const { options, start } = await begin(setting);
    const first = new Owner(kept, { options, hook, ...(start && { start }) });
    await first.say(scriptTag([{ tools: [write(join(cwd, "one.txt"))] }, { text: "Wrote." }]));
    const { requestId, toolUseID } = await first.until(({ asked }) => asked[0]);
    const { pid } = kept;
    kept.leave();

    const second = new Owner(kept, { options, hook, ask: allow });
    expect(await second.result()).toEqual(["Wrote."]);
    expect(second.asked).toMatchObject([{ requestId, toolUseID, toolName: "Write" }]);
    expect(readFileSync(join(cwd, "one.txt"), "utf8")).toBe("written\n");
    const open = { type: "control_request", request_id: requestId, request: { tool_use_id: toolUseID } };
    expect(await kept.answer("initialize")).toMatchObject({
      response: { session_state: "requires_action", pid, hooks_applied: true, mcp_servers_applied: true },
      pending_permission_requests: [open],
    });
    await second.until(({ messages }) => messages.find((message) => "state" in message && message.state === "idle"));
    kept.leave();

    const third = new Owner(kept, { options, hook, ask: allow });
    expect(await kept.answer("initialize")).toMatchObject({
      response: { session_state: "idle", pid, hooks_applied: true, mcp_servers_applied: true },
      pending_permission_requests: [],
      pending_user_dialog_requests: [],
    });
    const answered = kept.lines.findLastIndex(({ type }) => type === "control_response");
    await kept.until(({ lines }) => lines[answered + 1]);
    expect(kept.lines.slice(answered + 1)).toMatchObject([{ subtype: "background_tasks_changed", tasks: [] }]);
    expect(await turnOf(third, cwd)).toEqual(UNDER_OPTIONS);
    expect(kept).toMatchObject({ pid, attempts: [] });
    for (const { numbers } of [second, third]) expect(numbers).toEqual(ascending(numbers));
  });
});

describe.concurrent("between two owners", () => {
  it.for([
    { title: "commands run on between two owners, and their turns end with the next owner", ends: "later" },
    { title: "commands end between two owners, and the next owner reads the end", ends: "away" },
  ])("$title", async ({ ends }, { expect, onTestFinished }) => {
    const { cwd, kept, options } = newSetting(model, onTestFinished);
    for (const background of [false, true]) {
      const file = (name: string) => join(cwd, `${name} ${String(background)}`);
      const command = `touch "${file("started")}"; until [ -e "${file("go")}" ]; do sleep 0.02; done; echo ran >> "${file("ran")}"`;
      const launched = background ? [{ text: "Launched." }] : [];
      const first = new Owner(kept, { options, ask: allow });
      const tool = bash(command, { run_in_background: background });
      await first.say(scriptTag([{ tools: [tool] }, ...launched, { text: "It ended." }]));
      await first.result(launched.length);
      await expect.poll(() => existsSync(file("started"))).toBe(true);
      const left = kept.lines.length;
      kept.leave();
      const go = () => writeFileSync(file("go"), "");
      if (ends === "away") {
        go();
        await kept.line(({ result }) => result === "It ended.", left);
      }

      const second = new Owner(kept, { options, ask: allow });
      await kept.answer("initialize");
      const told = await second.until(({ messages }) => messages.find(isBackground));
      expect(told).toMatchObject({ tasks: background && ends === "later" ? [{ task_type: "local_bash" }] : [] });
      go();
      expect(await second.result()).toEqual(["It ended."]);
      expect(readFileSync(file("ran"), "utf8")).toBe("ran\n");
      expect({ asked: second.asked, attempts: kept.attempts }).toEqual({ asked: [], attempts: [] });
      expect(second.numbers).toEqual(ascending(second.numbers));
      kept.leave();
    }
  });

  it("a background agent waits for the answer to its request between two owners", async ({
    expect,
    onTestFinished,
  }) => {
    const { cwd, kept, options } = newSetting(model, onTestFinished);
    const own = scriptTag([{ tools: [write(join(cwd, "sub.txt"))] }, { text: "Agent's report." }]);
    const agent = {
      name: "Agent",
      input: { description: "a task", prompt: `Do it. ${own}`, subagent_type: "general-purpose" },
    };
    const first = new Owner(kept, { options });
    await first.say(scriptTag([{ tools: [agent] }, { text: "Launched." }, { text: "It reported." }]));
    const open = await first.until(({ asked, results }) => (results.length > 0 ? asked[0] : undefined));
    kept.leave();

    const second = new Owner(kept, { options, ask: allow });
    expect(await second.result()).toEqual(["It reported."]);
    const { agentID, requestId, toolUseID } = open;
    expect(second.asked).toMatchObject([{ agentID, requestId, toolUseID, toolName: "Write" }]);
    expect(existsSync(join(cwd, "sub.txt"))).toBe(true);
  });
});

const isBackground = ({ type, ...message }: SDKMessage) =>
  type === "system" && "subtype" in message && message.subtype === "background_tasks_changed";

/** Returns `numbers` as expected: in order, without gaps and duplicates. */
function ascending(numbers: readonly unknown[]): number[] {
  const known = numbers.filter((number) => typeof number === "number");
  return [...new Set(known)].toSorted((a, b) => a - b);
}

/** Plays a turn in which each kind of option has an effect; returns the effects. */
async function turnOf(owner: Owner, cwd: string) {
  const before = owner.messages.length;
  const tools = [
    { name: "mcp__mini__ping", input: {}, id: "toolu_ping" },
    { name: "Read", input: { file_path: "/etc/hostname" }, id: "toolu_read" },
    { ...bash("rm one.txt"), id: "toolu_rm" },
    { ...bash("echo sandboxed > two.txt"), id: "toolu_echo" },
  ];
  owner.hooked.length = 0;
  const prompt = `Use your options ${cwd}.`;
  await owner.say(prompt + scriptTag([{ tools }, { text: ["All ", "done."] }]));
  const turn = await owner.until(({ messages }) => {
    const after = messages.slice(before);
    return after.some((message) => message.type === "result" && "result" in message && message.result === "All done.")
      ? after
      : undefined;
  });
  const texts = turn.map((message) => JSON.stringify(message));
  const resultOf = (id: string) => texts.find((text) => text.includes(`"tool_use_id":"${id}"`)) ?? "";
  const init = texts.find((text) => text.includes('"subtype":"init"')) ?? "";
  return {
    "MCP server": resultOf("toolu_ping").includes("PONG"),
    "deny rule of settings": resultOf("toolu_read").includes("denied"),
    "disallowed tool": resultOf("toolu_rm").includes("denied") && !init.includes("WebFetch"),
    sandbox: readFileSync(join(cwd, "bwrap.log"), "utf8").includes("echo sandboxed"),
    plugin: init.includes('"name":"plugged"'),
    agent: init.includes('"helper"'),
    "partial messages": texts.some((text) => text.includes('"text_delta","text":"All "')),
    "system prompt": model.requests.some(
      ({ lastUserText, system }) => lastUserText.includes(prompt) && system.includes("Be kind."),
    ),
    hooked: owner.hooked,
  };
}

const UNDER_OPTIONS = {
  "MCP server": true,
  "deny rule of settings": true,
  "disallowed tool": true,
  sandbox: true,
  plugin: true,
  agent: true,
  "partial messages": true,
  "system prompt": true,
  hooked: ["mcp__mini__ping", "Bash", "Bash"],
};
