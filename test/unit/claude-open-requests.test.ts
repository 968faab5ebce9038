import type { PermissionResult } from "@anthropic-ai/claude-agent-sdk";
import { beforeEach, describe, expect, it } from "vitest";

import { OpenRequests } from "../../src/claude/process/open-requests.ts";
import { deniedBy } from "../../src/claude/process/permissions.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";

/** Requests of Claude Code and the answers to them, in `OpenRequests`. */

const folders = { cwd: "/nowhere", additionalDirectories: [], home: "/home/ann", closed: [], programs: [] };
const allow = { behavior: "allow" } as const;
let signals: AgentSignal[];
let reported: string[];
let requests: OpenRequests;
beforeEach(() => {
  [signals, reported] = [[], []];
  requests = new OpenRequests(
    (signal) => void signals.push(signal),
    (id) => void reported.push(id),
  );
});

async function ask(
  toolUseID: string,
  input: JsonObject = {},
  signal = new AbortController().signal,
  toolName = "Write",
) {
  const canUseTool = requests.asking({ folders, isSandboxed: false });
  return canUseTool(toolName, input, { signal, toolUseID, requestId: toolUseID });
}

/** Asks, and resolves when the request is open. */
async function open(
  id: string,
  input: JsonObject = {},
  ...rest: [AbortSignal?, string?]
): Promise<{ answer: Promise<PermissionResult | null> }> {
  const answer = ask(id, input, ...rest);
  await expect.poll(() => requests.has(id)).toBe(true);
  return { answer };
}

describe("a request of Claude Code", () => {
  it("a request is reported once, and answered as decided", async () => {
    const { answer } = await open("a", { file_path: "/nowhere/a" });
    expect(signals).toMatchObject([{ type: "asked", request: { requestId: "a", toolName: "Write" } }]);
    expect(reported).toEqual(["a"]);
    requests.answer("a", allow);
    expect(await answer).toMatchObject(allow);
    expect(requests.has("a")).toBe(false);
  });

  it("a request withdrawn before it was judged is not reported", async () => {
    expect(await ask("a", {}, AbortSignal.abort())).toMatchObject({
      behavior: "deny",
      message: "The request was withdrawn.",
    });
    expect(signals).toEqual([]);
  });

  it("a waiting request that is withdrawn is reported as withdrawn, an answered one is not", async () => {
    const stop = new AbortController();
    const waiting = await open("a", {}, stop.signal);
    const answered = await open("b", {}, stop.signal);
    requests.answer("b", allow);
    await answered.answer;
    stop.abort();
    expect(await waiting.answer).toMatchObject({ behavior: "deny", message: "The request was withdrawn." });
    expect(signals.filter(({ type }) => type === "withdrawn")).toEqual([{ type: "withdrawn", requestId: "a" }]);
  });

  it("a request is denied if its id is already open, or if 200 requests are open", async () => {
    const many = { behavior: "deny", message: expect.stringContaining("Too many requests are open") };
    await open("0");
    expect(await ask("0")).toMatchObject(many);
    for (let at = 1; at < 200; at += 1) void ask(String(at));
    await expect.poll(() => reported.length).toBe(200);
    expect(await ask("200")).toMatchObject(many);
    requests.answer("7", allow);
    await open("201");
  });
});

describe("an answer with changed input", () => {
  it("a changed input is judged with the rules that earlier answers have added", async () => {
    await open("a");
    const rules = [{ toolName: "Bash", ruleContent: "rm:*" }];
    const updatedPermissions = [
      { type: "addRules" as const, behavior: "deny" as const, destination: "session" as const, rules },
    ];
    requests.answer("a", { behavior: "allow", updatedPermissions });
    await open("b", { command: "ls" }, undefined, "Bash");
    const judged = await requests.judge("b", { command: "cat x" }, { denying: ["WebFetch"], folders });
    expect(judged).toMatchObject({
      denying: ["WebFetch", "Bash(rm:*)"],
      mentions: expect.arrayContaining(["/nowhere/x"]),
    });
    expect(await requests.judge("gone", {}, { denying: [], folders })).toBeUndefined();
  });

  it.each<[string, string, JsonObject, JsonObject]>([
    ["refused with another relative path", "Write", { file_path: "a" }, { file_path: "b" }],
    ["refused with a relative path in place of none", "Edit", {}, { file_path: "b" }],
    ["taken with the same relative path", "Write", { file_path: "a" }, { file_path: "a", content: "x" }],
    ["taken with an absolute path", "Write", { file_path: "a" }, { file_path: "/nowhere/b" }],
    ["taken with a path in the home folder", "Write", { file_path: "a" }, { file_path: "~/b" }],
    ["taken with a path of a tool that is not for files", "WebFetch", { file_path: "a" }, { file_path: "b" }],
  ])("a changed input is %s (%s from %j to %j)", async (verdict, toolName, before, after) => {
    await open("a", before, undefined, toolName);
    const judged = await requests.judge("a", after, { denying: [], folders });
    expect(judged?.refused?.includes("relative path") ?? false).toBe(verdict.startsWith("refused"));
  });

  it("`deniedBy` returns rules that deny, and no others", () => {
    const common = {
      destination: "session" as const,
      rules: [{ toolName: "Read", ruleContent: "x" }, { toolName: "Bash" }],
    };
    expect(deniedBy([{ type: "replaceRules", behavior: "deny", ...common }])).toEqual(["Read(x)", "Bash"]);
    expect(deniedBy([{ type: "addRules", behavior: "allow", ...common }])).toEqual([]);
    expect(deniedBy([{ type: "setMode", mode: "plan", destination: "session" }])).toEqual([]);
  });
});

it("a request of another server is withdrawn if Claude Code no longer waits for it", async () => {
  await requests.withdrawOthers(["a", "b"], Promise.resolve(["b"]));
  expect(signals).toEqual([{ type: "withdrawn", requestId: "a" }]);
  await requests.withdrawOthers(["c"], undefined);
  await requests.withdrawOthers([], Promise.resolve([]));
  expect(signals).toHaveLength(1);
});
