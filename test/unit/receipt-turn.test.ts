import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SessionEvent, StoredEvent } from "../../src/domain/event.ts";
import { countsOf, type Comparison, type FileChange } from "../../src/domain/receipt.ts";
import { buildReceipt, type Sight } from "../../src/engine/receipt/build-receipt.ts";
import { TurnReader } from "../../src/engine/receipt/turn-reader.ts";

/**
 * The fixture holds the events of one turn as this server has stored them: the real Claude Code 2.1.330 with the scripted model,
 * in the permission mode `default`, with the rule `Bash(rm *)` to deny and a caller who denied one request and changed another.
 * Paths, ids of messages and the figures of results were replaced or left out.
 */
const RECORDED = readFileSync(join(import.meta.dirname, "fixtures/receipt-turn.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as StoredEvent);

const CWD = "/home/me/project";

function read(events: readonly StoredEvent[], background = 0): TurnReader {
  const reader = new TurnReader({ background });
  for (const each of events) reader.take(each);
  return reader;
}

function compared(files: readonly FileChange[], more: Partial<Comparison> = {}): Comparison {
  const folders = [{ path: CWD, kind: "git" as const, headBefore: "a", headAfter: "a" }];
  const rest = { commits: [], gitFiles: [], notSeen: [], after: { folders: [] } };
  return { by: "tree", complete: true, folders, files: [...files], ...rest, ...more };
}

function receiptOf(events: readonly StoredEvent[], comparison: Comparison | undefined, more: Partial<Sight> = {}) {
  const facts = read(events).done();
  return buildReceipt({ turn: 1, facts, comparison, cwd: [CWD], folders: [], others: 0, between: 0, ...more });
}

let id = 0;
function event(each: SessionEvent): StoredEvent {
  id += 1;
  return { ...each, id, at: id };
}
const message = (content: object): StoredEvent => event({ type: "message", data: { message: { ...content } } });
const call = (name: string, input: object, callId = `call-${String(id)}`): StoredEvent =>
  message({ type: "assistant", message: { content: [{ type: "tool_use", id: callId, name, input }] } });
const result = (callId: string, content: string, more: object = {}): StoredEvent =>
  message({ type: "user", message: { content: [{ type: "tool_result", tool_use_id: callId, content, ...more }] } });

/** Runs one call of `name`, which returns `content`. */
function ran(name: string, input: object, content: string, isError = false): StoredEvent[] {
  const callId = `call-${String(id)}`;
  return [call(name, input, callId), result(callId, content, { is_error: isError })];
}

describe("receipt of a recorded turn", () => {
  const receipt = receiptOf(RECORDED, compared([{ path: "old.txt", change: "changed", lines: [1, 1], by: ["tree"] }]));

  it("names exit codes of plain commands, and of no others", () => {
    expect(receipt.commands.map(({ command, exit }) => [command, exit])).toEqual([
      ["true", 0],
      ["echo some; echo err >&2; exit 3", "unknown"],
      ["sh -c 'exit 3'", 3],
      ["grep nothing old.txt", 1],
      ["sh -c 'kill -TERM $$'", 143],
      ["sleep 5", "unknown"],
      ["sleep 2", "unknown"],
      ["node --test a.test.mjs", 1],
      ["node --test a.test.mjs 2>&1 | tail -20", "unknown"],
      ["node --test a.test.mjs || true", "unknown"],
      ["cd . && node --test a.test.mjs", 1],
      ["cd nowhere && node --test a.test.mjs", "unknown"],
      ["seq 1 20000", 0],
      ["mkdir changed", 0],
      ["echo x", "unknown"],
      ["exit 7", 7],
      ["true", 0],
      ["grep nothing old.txt", "unknown"],
    ]);
    expect(countsOf(receipt)).toMatchObject({ ran: 18, failed: 6, unknown: 8 });
  });

  it("reads the totals of a runner only where nothing else can write them", () => {
    const totals = { check: "test", passed: 1, failed: 1, skipped: 1 };
    expect(receipt.commands.filter(({ check }) => check)).toMatchObject([
      { command: "node --test a.test.mjs", ...totals },
      { command: "node --test a.test.mjs 2>&1 | tail -20", ...totals },
      { command: "node --test a.test.mjs || true", check: "test" },
      { command: "cd . && node --test a.test.mjs", ...totals },
      { command: "cd nowhere && node --test a.test.mjs", check: "test" },
    ]);
    expect(receipt.commands.filter(({ passed }) => passed !== undefined)).toHaveLength(3);
  });

  it("lists answered requests, and counts each denied call once", () => {
    expect(receipt.requests).toHaveLength(9);
    expect(receipt.requests.filter(({ behavior }) => behavior === "deny")).toEqual([
      { eventId: 51, toolName: "Bash", behavior: "deny", by: "caller" },
    ]);
    expect(receipt.denied).toBe(2);
  });

  it("names the tools that saw a change beside the tree, and drops a file that was changed back", () => {
    expect(receipt.files).toEqual([{ path: "old.txt", change: "changed", lines: [1, 1], by: ["tree", "Edit"] }]);
    expect(receipt.outside).toEqual(["/home/me/elsewhere/outside.txt"]);
  });

  it("takes the word of tools where the tree is blind", () => {
    const files = [
      { path: "new.txt", change: "added", by: ["Write"] },
      { path: "old.txt", change: "changed", by: ["Edit"] },
      { path: "by-subagent.txt", change: "added", by: ["Write"] },
    ];
    const blind = receiptOf(RECORDED, undefined, { why: "The folder is too large." });
    expect(blind).toMatchObject({ by: "tools", complete: false, files });
    expect(blind.notSeen[0]).toBe("The folder is too large.");
    const ignored = receiptOf(RECORDED, compared([], { outOfSight: [`${CWD}/new.txt`] }));
    expect(ignored).toMatchObject({ by: "tree", complete: true, files: [files[0]] });
  });

  it("finds files by each name of the session's folder", () => {
    const linked = { cwd: ["/link", CWD] };
    const files = [{ path: "new.txt", change: "added" as const, by: ["tree"] }];
    expect(receiptOf(RECORDED, compared(files), linked).files).toEqual([{ ...files[0], by: ["tree", "Write"] }]);
    const elsewhere = receiptOf(RECORDED, compared([]), { folders: ["/home/me/elsewhere"] });
    expect(elsewhere.outside).toEqual([]);
  });

  it("says what could not be seen", () => {
    expect(receipt.notSeen).toEqual([
      "Effects of commands outside the session's folders are not looked for.",
      "Files that git ignores are listed only if a tool reports a change.",
    ]);
    expect(receipt.background).toBe(0);
  });
});

describe("facts that the recorded turn does not have", () => {
  const needsLook = (...events: StoredEvent[]) => read(events).needsLook;

  it("a second look is needed after a call, a hook, background work, a verification or a lost process", () => {
    const [started, said] = [RECORDED[0], message({ type: "assistant", message: { content: [] } })];
    expect(started && needsLook(started, said, message({ type: "result", permission_denials: [] }))).toBe(false);
    expect(read([], 1).needsLook).toBe(true);
    expect(needsLook(call("Read", {}))).toBe(true);
    expect(needsLook(message({ type: "system", subtype: "hook_response", hook_name: "Stop" }))).toBe(true);
    const task = { id: "a", type: "local_bash", description: "x" };
    expect(needsLook(event({ type: "background.changed", data: { tasks: [task] } }))).toBe(true);
    const exit = { processId: "1", code: null, signal: "SIGKILL", expected: false };
    expect(needsLook(event({ type: "process.exited", data: exit }))).toBe(true);
    const verifying = { turnId: "t", attempt: 1, of: 2, commands: ["true"] };
    expect(needsLook(event({ type: "verification.started", data: verifying }))).toBe(true);
    const prompt = (text: string) => event({ type: "prompt.queued", data: { promptId: "p", text } });
    expect(["Say hello.", " /deploy now"].map((text) => needsLook(prompt(text)))).toEqual([false, true]);
    expect(new TurnReader({ background: 0, mayHook: true }).needsLook).toBe(true);
  });

  it("a turn in which nothing could change has a complete receipt without a comparison", () => {
    const receipt = receiptOf([], undefined);
    expect(receipt).toMatchObject({ by: "tools", complete: true, notSeen: [], files: [], leftOut: 0 });
  });

  it("counts no denial for a withdrawn request, the request of a verification, or a denial of an earlier turn", () => {
    const own = { requestId: "v", kind: "permission", toolName: "Verification", input: {}, toolUseId: "v" } as const;
    const request = { requestId: "r", kind: "permission", toolName: "Bash", input: {}, toolUseId: "u" } as const;
    const answer = { requestId: "r", toolName: "Bash", behavior: "deny", by: "withdrawn" } as const;
    const receipt = receiptOf(
      [
        event({ type: "permission.asked", data: own }),
        event({ type: "permission.answered", data: { ...own, behavior: "deny", by: "caller" } }),
        event({ type: "permission.asked", data: request }),
        event({ type: "permission.answered", data: answer }),
        message({ type: "result", permission_denials: [{ tool_use_id: "earlier" }] }),
      ],
      compared([]),
    );
    expect(receipt).toMatchObject({ denied: 0, requests: [{ by: "caller" }, { behavior: "deny", by: "withdrawn" }] });
  });

  it("a call without a result, or with a note of Claude Code, has an unknown exit code", () => {
    const events = [
      call("Bash", { command: "true" }),
      ...ran("Bash", { command: "sleep 900" }, "Command did not complete within its 600s timeout and was moved to"),
      ...ran(
        "Bash",
        { command: "npm test" },
        "Exit code 137\n<error>Command was aborted before completion</error>",
        true,
      ),
      ...ran("Bash", { command: "timeout 5 npm test" }, "Exit code 124", true),
      ...ran("PowerShell", { command: "Get-ChildItem" }, "x"),
    ];
    const { commands } = receiptOf(events, compared([]));
    const byCall = commands.map(({ exit }) => exit);
    expect(byCall).toEqual(["unknown", "unknown", "unknown", "unknown", 0]);
  });

  it("a command that an interrupt has stopped counts as run, with an unknown exit code, and not as denied", () => {
    const text = "The user doesn't want to proceed with this tool use. [...] this call was stopped while running";
    const stopped = (kind: string, more: object = {}): StoredEvent[] => {
      const callId = `call-${String(id)}`;
      const content = [{ type: "tool_result", tool_use_id: callId, content: text, is_error: true }];
      const meta = [{ id: callId, non_execution_kind: kind, ...more }];
      return [
        call("Bash", { command: kind }, callId),
        message({ type: "user", message: { content }, tool_result_meta: meta }),
      ];
    };
    const rejected = { permission_decision: { decision: "reject" } };
    const events = [
      ...stopped("user-rejected"),
      ...stopped("interrupted", rejected),
      ...stopped("automode-blocked"),
      ...stopped("cancelled", { call_ended: "not_started" }),
      ...stopped("user-rejected", rejected),
    ];
    expect(receiptOf(events, compared([]))).toMatchObject({
      commands: [
        { command: "user-rejected", exit: "unknown" },
        { command: "interrupted", exit: "unknown" },
      ],
      denied: 2,
    });
  });

  it("names tools of MCP servers once, and hooks", () => {
    const events = [
      call("mcp__db__write", { file_path: "x" }),
      call("mcp__db__write", {}),
      message({ type: "system", subtype: "hook_response", hook_name: "PostToolUse:Edit" }),
    ];
    expect(receiptOf(events, compared([]), { background: 2 })).toMatchObject({
      background: 2,
      notSeen: [
        "Files that git ignores are listed only if a tool reports a change.",
        "Tools of MCP servers can have effects elsewhere: mcp__db__write.",
        "Hooks ran, which can change commands and their results: PostToolUse:Edit.",
        "Background tasks still run; their later changes count for a later turn.",
      ],
    });
  });

  it("keeps failed commands, checks and deletions within 64 KiB, and counts everything", () => {
    const names = Array.from({ length: 3_000 }, (_, at) => `src/${"folder/".repeat(5)}${String(at)}.ts`);
    const files = names.map((path, at): FileChange => {
      return { path, change: at === 0 ? "deleted" : "changed", lines: [1, 0], by: ["tree"] };
    });
    const commands = names.flatMap((name, at) =>
      at === 1
        ? ran("Bash", { command: "npm test" }, "Exit code 1", true)
        : ran("Bash", { command: `cat ${name}` }, "x"),
    );
    const receipt = receiptOf(commands, compared(files));
    expect(Buffer.byteLength(JSON.stringify(receipt))).toBeLessThanOrEqual(65_536);
    expect(receipt.commands[0]).toMatchObject({ command: "npm test", exit: 1, check: "test" });
    expect(receipt.files[0]).toMatchObject({ change: "deleted" });
    const { commands: listed, files: shown } = receipt;
    expect(receipt.leftOut).toBe(6_000 - listed.length - shown.length);
    expect(countsOf(receipt)).toMatchObject({ changed: 2_999, deleted: 1, lines: [3_000, 0], ran: 3_000, failed: 1 });
  });
});
