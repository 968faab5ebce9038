import { describe, expect, it } from "vitest";
import { receiptFacts, receiptText } from "../../console/src/timeline/evidence/receipt-words.ts";
import { verificationNow, verificationTitle } from "../../console/src/timeline/evidence/verification-words.ts";
import { shownEvent } from "../../src/console/shown-event.ts";
import type { CommandRun, Receipt } from "../../src/domain/receipt.ts";
import type { Verification } from "../../src/domain/verification.ts";
import { receiptEvent, receiptOf, verified, verifying } from "../kit/browser/evidence.ts";
import { ended, fold, kinds, prompt, started, text, toolCall } from "../kit/browser/timeline.ts";

const run = (command: string, exit: CommandRun["exit"], more: Partial<CommandRun> = {}): CommandRun => ({
  eventId: 5,
  command,
  exit,
  ...more,
});
const check = (command: string, exit: CommandRun["exit"], more: Partial<CommandRun> = {}) =>
  run(command, exit, { check: "test", ...more });
const file = (path: string, more: Partial<Receipt["files"][number]> = {}): Receipt["files"][number] => ({
  path,
  change: "changed",
  by: ["tree"],
  ...more,
});
const line = (receipt: Partial<Receipt>) =>
  receiptFacts(receiptOf(receipt))
    .map(({ isWarning, text: words }) => (isWarning === true ? `!${words}` : words))
    .join(" · ");

describe("the line of a receipt", () => {
  it("the line names files, tests, checks, denials and commits, and marks what may hide a failure", () => {
    const files = [
      file("a.ts", { lines: [40, 2] }),
      file("a.test.ts", { lines: [1, 5], tests: { removed: 2, skipped: 1 } }),
      file("logo.png", { change: "added" }),
      file("b.ts", { change: "deleted" }),
    ];
    const commands = [check("npm test", 1, { failed: 3, passed: 39 }), check("npm test", 0, { passed: 42, failed: 0 })];
    const commits = [{ hash: "ab12cd3ef".padEnd(40, "0"), subject: "Mend it" }];
    expect(line({ files, commands, commits, denied: 1 })).toBe(
      "4 files (+41 −7), 1 deleted · !2 tests removed · !1 test set to skip · npm test: 42 passed · 1 denied · commit ab12cd3",
    );
    expect(receiptText(receiptOf({ files: [file("a", { lines: [1, 0] })] }))).toBe("1 file, 1 line added, 0 removed");
  });

  it.each<[Partial<Receipt>, string]>([
    [{}, "No files changed"],
    [{ by: "tools", complete: false }, "No file changes seen · !incomplete"],
    [{ outside: ["/etc/hosts"] }, "No files changed · !1 change outside the folders"],
    [{ gitFiles: ["config", "hooks/pre-commit"] }, "No files changed · !git hooks and configuration changed"],
    [{ gitFiles: ["hooks/pre-commit"] }, "No files changed · !git hooks changed"],
    [{ background: 1, leftOut: 1_200 }, "No files changed · 1 background task still running · 1,200 more not listed"],
    [
      { files: [file("a.test.ts", { change: "deleted", tests: { deleted: 1, emptied: 2, only: 3 } })] },
      "1 file, 1 deleted · !1 test file deleted · !2 test files emptied · !3 tests set to run alone",
    ],
    [
      { commits: "1234".split("").map((hash) => ({ hash: hash.repeat(40), subject: "" })) },
      "No files changed · 4 commits",
    ],
  ])("a receipt with %j reads %s", (receipt, words) => {
    expect(line(receipt)).toBe(words);
  });

  it.each<[CommandRun, string]>([
    [check("tsc", 0), "tsc: passed"],
    [check("tsc", 2), "!tsc: failed (exit 2)"],
    [check("npm test | tail", "unknown"), "npm test | tail: result unknown"],
    [
      check("npm test || true", "unknown", { passed: 4, failed: 1 }),
      "!npm test || true: 1 failed, 4 passed, exit code unknown",
    ],
    [check("jest", 1, { passed: 4, failed: 0, skipped: 2 }), "!jest: 4 passed, 2 skipped, exit 1"],
    [run("grep foo", 1), "1 command, 1 failed"],
  ])("the command %j reads %s", (command, words) => {
    expect(line({ commands: [command] })).toBe(`No files changed · ${words}`);
  });

  it("of many checks the failed ones come first, and the rest is a number", () => {
    const commands = ["a", "b", "c", "d"].map((name) => check(name, name === "d" ? 1 : 0)).concat(run("ls", 0));
    expect(line({ commands })).toBe(
      "No files changed · !d: failed (exit 1) · a: passed · b: passed · 1 more check · 1 other command",
    );
  });

  it("a command cannot hide its end behind terminal sequences or invisible characters", () => {
    expect(line({ commands: [check("npm\u202E test\n\u001b[2Kok", 1)] })).toContain("npm⟨U+202E⟩ test ok: failed");
  });
});

const results = (exit: number): Verification["commands"] => [
  { command: "npm run lint", exit: 0, ms: 900, tail: "" },
  { command: "npm test", exit, ms: 2_100, tail: "1 failed" },
];
const verification = (changes: Partial<Verification> = {}): Verification => ({
  status: "failed",
  attempts: 1,
  of: 3,
  commands: results(1),
  ...changes,
});
const COMMANDS = ["npm run lint", "npm test"];
const words = (items: ReturnType<typeof fold>) =>
  items.flatMap((item) => {
    if (item.kind !== "verification") return [];
    const { more, text: title, tone } = verificationTitle(item);
    return [`${tone}: ${title} (${more})`];
  });

describe("verifications in the timeline", () => {
  it("each run is an item that stands where it began, and the head tells of the last one", () => {
    const begun = [prompt("p"), started("p"), text("Done."), verifying(1, 3, ...COMMANDS)];
    expect(words(fold(...begun))).toEqual(["running: Verifying, attempt 1 of 3 (npm run lint · npm test)"]);
    expect(verificationNow(fold(...begun), true)).toBe("verifying, attempt 1 of 3");
    const repaired = [...begun, verified(verification()), text("I mend it."), verifying(2, 3, ...COMMANDS)];
    expect(verificationNow(fold(...repaired.slice(0, 6)), true)).toBe("");
    const passed = fold(
      ...repaired,
      verified(verification({ status: "passed", attempts: 2, commands: results(0) })),
      ended(),
    );
    expect(words(passed)).toEqual([
      "bad: Verification failed, attempt 1 of 3 (npm test: exit 1 · 3.0 s)",
      "good: Verification passed, attempt 2 of 3 (npm run lint · npm test · 3.0 s)",
    ]);
    expect(kinds(passed)).toEqual(["prompt", "text", "verification", "text", "verification", "turn"]);
    expect(verificationNow(passed, false)).toBe("");
    const red = fold(...repaired, verified(verification()), ended({ errorSubtype: "verification_failed" }));
    expect([verificationNow(red, false), verificationNow(red, true)]).toEqual(["Verification failed", ""]);
  });

  it.each(["denied", "refused"] as const)("a verification that was %s without a run is an item", (status) => {
    const items = fold(verified(verification({ status, attempts: 0, of: 1, commands: [], message: "No." })));
    expect(words(items)).toEqual([`warn: Verification ${status} ()`]);
  });

  it("a run without a result is stopped by the next run or by the end of the turn", () => {
    const items = fold(verifying(1, 1, "a"), verifying(1, 1, "a"), ended({ outcome: "lost" }));
    expect(words(items)).toEqual(["quiet: Verification stopped (a)", "quiet: Verification stopped (a)"]);
  });

  it("a status and fields of a newer server are shown by their name or ignored", () => {
    const newer = { ...verification({ attempts: 1, of: 1, commands: [] }), status: "postponed", extra: { a: 1 } };
    expect(words(fold({ type: "verification.ended", data: { turnId: "t", verification: newer } }))).toEqual([
      "quiet: postponed ()",
    ]);
  });

  it("the prompt that sends a red run back is a quiet line with its text, not a prompt of a user", () => {
    const sent = { type: "prompt.queued", data: { promptId: "q", text: "npm test failed.", via: "verification" } };
    const items = fold(prompt("p"), started("p"), sent, { type: "prompt.steered", data: { promptId: "q" } });
    expect(items.slice(1)).toMatchObject([{ kind: "line", tone: "quiet", more: "npm test failed." }]);
  });

  it("a turn of a verification on demand begins with a line", () => {
    const begun = { type: "turn.started", data: { turnId: "t", origin: "verify", promptIds: [] } };
    expect(fold(begun)).toMatchObject([{ kind: "line", text: "Commands were run on demand" }]);
  });
});

describe("receipts in the timeline", () => {
  const turn = [prompt("p"), started("p")];

  it("the receipt stands before the end of its turn", () => {
    const items = fold(...turn, receiptEvent({ denied: 1 }), ended({ receiptEventId: 3 }));
    expect(kinds(items)).toEqual(["prompt", "receipt", "turn"]);
    expect(items[1]).toMatchObject({ eventId: 3, receipt: { denied: 1 } });
  });

  it("an empty receipt is shown only if the turn used a tool", () => {
    const verifies = { eventId: 3, toolName: "Verification", behavior: "allow", by: "console" } as const;
    const earlier = [...turn, toolCall("u", "Read"), ended()];
    const quiet = [
      started("q"),
      text("Hello."),
      receiptEvent({ others: 1, between: 2, requests: [verifies] }),
      ended(),
    ];
    expect(kinds(fold(...earlier, ...quiet))).toEqual(["prompt", "call", "turn", "line", "text", "turn"]);
    expect(kinds(fold(...turn, toolCall("u", "Read"), receiptEvent(), ended()))).toEqual([
      "prompt",
      "call",
      "receipt",
      "turn",
    ]);
  });

  it("the page gets neither the baseline nor the state after the turn, and the event does not count as cut", () => {
    const files = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, at) => [`src/${String(at)}.ts`, "x".repeat(80)]),
    );
    const snapshot = { folders: [{ path: "/repo", kind: "git" as const, files }] };
    const { data } = receiptEvent({ denied: 1 });
    const receipt = shownEvent({ id: 3, at: 1, type: "turn.receipt", data: { ...data, after: snapshot } });
    expect(receipt).toEqual({ id: 3, at: 1, type: "turn.receipt", data });
    const baseline = shownEvent({ id: 2, at: 1, type: "turn.baseline", data: { turnId: "t", before: snapshot } });
    expect(baseline).toEqual({ id: 2, at: 1, type: "turn.baseline", data: { turnId: "t", before: { folders: [] } } });
    expect(fold({ type: "turn.baseline", data: { turnId: "t" } })).toEqual([]);
  });
});
