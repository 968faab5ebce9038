import { describe, expect, it } from "vitest";

import { CAN_RUN } from "../../src/domain/approvals/risk.ts";
import { parseRule, type RuleBehavior } from "../../src/domain/approvals/rule.ts";
import type { SessionEvent, StoredEvent } from "../../src/domain/event.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { PermissionRequest } from "../../src/domain/permission.ts";
import { isChanged, rehearse, type Replayed } from "../../src/engine/policy/rehearsal.ts";

const CWD = "/srv/p";

type Texts = Partial<Record<RuleBehavior, readonly string[]>>;

/** `allowRules`: rules that the session began under. The id of each event is its time. */
async function replay(log: readonly SessionEvent[], texts: Texts, { allowRules = [] as string[], since = 0 } = {}) {
  const rules = (behavior: RuleBehavior) =>
    (texts[behavior] ?? []).map((text) => {
      const parsed = parseRule(text, behavior);
      if (!parsed.ok) throw new Error(parsed.problem);
      return parsed.rule;
    });
  const tried = { allow: rules("allow"), ask: rules("ask"), deny: rules("deny"), home: "/home/ann" };
  const stored = log.map((event, index): StoredEvent => ({ ...event, id: index + 1, at: index + 1 }));
  const found: Replayed[] = [];
  // oxlint-disable-next-line typescript/require-await -- the log of a store arrives page by page
  const pages = async function* () {
    yield* stored;
  };
  for await (const each of rehearse(pages(), { spec: { cwd: CWD }, allowRules, since }, tried)) found.push(each);
  return found;
}

const asked = (toolName: string, input: JsonObject, over: Partial<PermissionRequest> = {}): SessionEvent => ({
  type: over.kind === "question" ? "question.asked" : "permission.asked",
  data: { requestId: "r", kind: "permission", toolName, input, toolUseId: "u", ...over },
});
const answered = (by: string, behavior: "allow" | "deny", rule?: string): SessionEvent => ({
  type: "permission.answered",
  data: { requestId: "r", toolName: "Bash", behavior, by, ...(rule !== undefined && { rule }) },
});
const calls = (name: string, input: JsonObject, id = "u"): SessionEvent => ({
  type: "message",
  data: { message: { type: "assistant", message: { content: [{ type: "tool_use", id, name, input }] } } },
});
const result = (more: JsonObject = {}, id = "u"): SessionEvent => ({
  type: "message",
  data: { message: { type: "user", message: { content: [{ type: "tool_result", tool_use_id: id }] }, ...more } },
});
const bash = (command: string) => asked("Bash", { command });
const file = (tool: string, path: string, over: Partial<PermissionRequest> = {}) =>
  asked(tool, { file_path: path }, { paths: [path], ...over });
const byUser = answered("user", "allow");

const summary = ({ after, before }: Replayed) => [before.route, after.route, after.rule];

describe("the rehearsal of a request", () => {
  it.each<[string, SessionEvent, Texts, unknown[]]>([
    ["an allow rule", bash("npm test"), { allow: ["Bash(npm test)"] }, ["asked", "allowed", "Bash(npm test)"]],
    ["no rule for all of it", bash("npm test && x"), { allow: ["Bash(npm test)"] }, ["asked", "asked", undefined]],
    ["a deny rule", bash("cd y; rm x"), { deny: ["Bash(rm:*)"] }, ["asked", "denied", "Bash(rm:*)"]],
    [
      "an ask rule above an allow rule",
      bash("ls"),
      { allow: ["Bash"], ask: ["Bash(ls)"] },
      ["asked", "asked", "Bash(ls)"],
    ],
    [
      "an unclear command",
      bash("$x y"),
      { allow: ["Bash(echo:*)"], deny: ["Bash(rm:*)"] },
      ["asked", "asked", "Bash(rm:*)"],
    ],
    ["a masked command", bash("curl -u [masked] x"), { allow: ["Bash"] }, ["asked", "unjudged", undefined]],
    [
      "a masked text that no rule reads",
      asked("mcp__a__b", { text: "[masked]" }),
      { allow: ["mcp__a"] },
      ["asked", "allowed", "mcp__a"],
    ],
    ["a path", file("Edit", `${CWD}/src/a.ts`), { allow: ["Edit(src/**)"] }, ["asked", "allowed", "Edit(src/**)"]],
    [
      "a link out of the folder",
      file("Edit", `${CWD}/src/a`, { paths: [`${CWD}/src/a`, "/etc/a"] }),
      { allow: ["Edit(src/**)"] },
      ["asked", "asked", undefined],
    ],
    [
      "a file that can run commands",
      file("Write", `${CWD}/.envrc`, { risk: { level: "all", why: [CAN_RUN] } }),
      { allow: ["Edit"] },
      ["asked", "asked", undefined],
    ],
    ["a refused request", file("Read", "/k", { refused: "No." }), { allow: ["Read"] }, ["denied", "denied", undefined]],
    [
      "a question",
      asked("AskUserQuestion", {}, { kind: "question" }),
      { allow: ["AskUserQuestion"] },
      ["asked", "asked", undefined],
    ],
    ["a tool of an MCP server", asked("mcp__a__b", {}), { deny: ["mcp__a__*"] }, ["asked", "denied", "mcp__a__*"]],
  ])("%s decides the request as it does at the server", async (_, request, texts, expected) => {
    expect((await replay([calls("Bash", { command: "x" }), request, byUser, result()], texts)).map(summary)).toEqual([
      expected,
    ]);
  });

  it.each<[string, SessionEvent[], unknown]>([
    ["an approver", [byUser], { route: "asked", answer: "allow", by: "user" }],
    ["the time limit", [answered("timeout", "deny")], { route: "asked", answer: "deny", by: "timeout" }],
    ["a rule", [answered("rule", "allow", "Bash(ls)")], { route: "allowed", by: "rule", rule: "Bash(ls)" }],
    ["a deny rule", [answered("rule", "deny", "Bash")], { route: "denied", by: "rule", rule: "Bash" }],
    ["no approver", [answered("rule", "deny")], { route: "asked", answer: "deny", by: "rule" }],
    [
      "a remembered answer",
      [answered("rule", "allow", "Bash(ls -l)")],
      { route: "asked", answer: "allow", by: "remembered", rule: "Bash(ls -l)" },
    ],
    ["nothing yet", [], { route: "asked", by: "" }],
  ])("the recorded decision of %s is told", async (_, answer, before) => {
    const [replayed, ...others] = await replay([bash("ls"), ...answer], {}, { allowRules: ["Bash(ls)"] });
    expect([replayed?.before, others]).toEqual([before, []]);
  });
});

describe("the rehearsal of a verification", () => {
  const commands = ["npm test", "make"];
  const input = { commands };
  const request = asked("Verification", input, { requestId: "t.verify.1", toolUseId: "" });
  const started = (attempt: number, turnId: string): SessionEvent => ({
    type: "verification.started",
    data: { turnId, attempt, of: 2, commands },
  });

  it.each<[string, Texts, unknown[], unknown[]]>([
    ["no rule", {}, ["asked", "asked", undefined], ["unasked", "unasked", undefined]],
    [
      "an allow rule for one",
      { allow: ["Bash(make)"] },
      ["asked", "asked", undefined],
      ["unasked", "unasked", undefined],
    ],
    [
      "allow rules for all",
      { allow: ["Bash(make)", "Bash(npm:*)"] },
      ["asked", "allowed", "Bash(npm:*)"],
      ["unasked", "unasked", undefined],
    ],
    ["an ask rule", { ask: ["Bash(make)"] }, ["asked", "asked", undefined], ["unasked", "asked", "Bash(make)"]],
    ["a deny rule", { deny: ["Bash(make)"] }, ["asked", "denied", "Bash(make)"], ["unasked", "denied", "Bash(make)"]],
  ])("%s decides its commands as uses of Bash, asked or not", async (_, texts, ofRequest, ofRun) => {
    const log = [request, started(1, "t"), started(2, "t"), started(1, "u"), started(2, "u")];
    const found = await replay(log, texts);
    expect(found.map(summary)).toEqual([ofRun, ofRequest]);
    expect(found.map(({ eventId }) => eventId)).toEqual([4, 1]);
  });
});

describe("the rehearsal of a call that was not asked", () => {
  it.each<[string, SessionEvent, Texts, unknown[]]>([
    ["an allow rule", calls("Bash", { command: "ls" }), { allow: ["Bash"] }, ["unasked", "unasked", undefined]],
    ["no rule", calls("Bash", { command: "ls" }), {}, ["unasked", "unasked", undefined]],
    [
      "a deny rule",
      calls("Read", { file_path: ".env" }),
      { deny: ["Read(.env)"] },
      ["unasked", "denied", "Read(.env)"],
    ],
    [
      "a rule for another file",
      calls("Read", { file_path: "a" }),
      { deny: ["Read(.env)"] },
      ["unasked", "unasked", undefined],
    ],
    ["an ask rule", calls("Agent", {}), { ask: ["Agent"] }, ["unasked", "asked", "Agent"]],
    [
      "an unclear command",
      calls("Bash", { command: "./x" }),
      { deny: ["Bash(rm:*)"] },
      ["unasked", "asked", "Bash(rm:*)"],
    ],
    [
      "an allow rule for exactly the unclear command",
      calls("Bash", { command: "./x" }),
      { allow: ["Bash(./x)"], deny: ["Bash(rm:*)"] },
      ["unasked", "unasked", undefined],
    ],
    [
      "a masked command",
      calls("Bash", { command: "x [masked]" }),
      { ask: ["Bash"] },
      ["unasked", "unjudged", undefined],
    ],
  ])("%s decides the call", async (_, call, texts, expected) => {
    expect((await replay([call, result()], texts)).map(summary)).toEqual([expected]);
  });

  it("a call that Claude Code has denied is judged only if it is denied again", async () => {
    const meta = { tool_result_meta: [{ id: "u", permission_decision: { decision: "reject", source: "hook" } }] };
    const notice: SessionEvent = {
      type: "notice",
      data: { kind: "denial", message: "No.", details: { tool_use_id: "u" } },
    };
    for (const end of [[result(meta)], [notice, result()]]) {
      const log = [calls("Bash", { command: "rm x" }), ...end];
      expect((await replay(log, { deny: ["Bash(rm:*)"] })).map(summary)).toEqual([["denied", "denied", "Bash(rm:*)"]]);
      const [freed] = await replay(log, { allow: ["Bash"] });
      expect(freed && [...summary(freed), isChanged(freed)]).toEqual(["denied", "unjudged", undefined, false]);
    }
  });

  it("each call counts once: as its request in any order, at the end of its process, and not before `since`", async () => {
    const exited: SessionEvent = {
      type: "process.exited",
      data: { processId: "p", code: 0, signal: null, expected: true },
    };
    const kinds = (found: Replayed[]) => found.map(({ eventId, kind }) => [kind, eventId]);
    expect(kinds(await replay([bash("ls"), calls("Bash", {}), byUser, result()], {}))).toEqual([["request", 1]]);
    const log = [calls("Bash", {}), exited, calls("Bash", {}, "v"), bash("ls")];
    expect(kinds(await replay(log, {}))).toEqual([
      ["call", 1],
      ["call", 3],
      ["request", 4],
    ]);
    expect(kinds(await replay([...log, byUser], {}, { since: 4 }))).toEqual([["request", 4]]);
  });
});
