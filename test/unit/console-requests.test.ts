import { beforeAll, describe, expect, test } from "vitest";
import { allowWith, denial, doneWords, editableOf, parseEditedInput } from "../../console/src/requests/words/answer.ts";
import { decidedWords, laterApprovers, whyReadOnly } from "../../console/src/requests/words/deciders.ts";
import { approvers } from "../../console/src/state/answer-source.ts";
import { APPROVERS } from "../../src/approvers/approvers.ts";
import { type Hand, MisclickGuard } from "../../console/src/requests/words/misclick-guard.ts";
import {
  answersOf,
  NO_CHOICE,
  questionsIn,
  withOther,
  withPick,
  type Question,
} from "../../console/src/requests/words/questions.ts";
import { groupBySession, updateShown } from "../../console/src/requests/words/shown-requests.ts";
import type { PendingRequest } from "../../src/console/wire.ts";

const request = (changes: Partial<PendingRequest> = {}): PendingRequest => ({
  sessionId: "s1",
  title: "Mend the tests",
  cwd: "/home/ann/shop",
  requestId: "r1",
  eventId: 7,
  type: "permission",
  toolName: "Bash",
  input: { command: "npm test", description: "Run the tests" },
  remember: ["Bash(npm test)"],
  approver: "console",
  createdAt: 1_000,
  expiresAt: 60_000,
  approvals: ["user", "console", "caller"],
  approverDeadline: 60_000,
  ...changes,
});

describe("answers as they are sent", () => {
  test("a denial has a message only if one was typed", () => {
    expect(denial("  \n")).toEqual({ decision: "deny" });
    expect(denial(" Use pnpm. ")).toEqual({ decision: "deny", message: "Use pnpm." });
  });

  test("a command is edited as text, and the other fields of the input stay unchanged", () => {
    const asked = request();
    expect(editableOf(asked)).toEqual({ key: "command", text: "npm test" });
    const edited = parseEditedInput(asked, 'echo "{"');
    expect(edited).toEqual({ ok: true, value: { command: 'echo "{"', description: "Run the tests" } });
  });

  test("an input of one text is edited as text, any other input as JSON", () => {
    expect(editableOf(request({ toolName: "Skill", input: { skill: "pdf" } }))).toEqual({ key: "skill", text: "pdf" });
    expect(editableOf(request({ toolName: "Read", input: { file_path: "/a", limit: 3 } })).key).toBeUndefined();
    expect(editableOf(request({ input: { command: 3 } })).key).toBeUndefined();
    expect(editableOf(request({ type: "plan", input: { plan: "# Go", more: 1 } }))).toEqual({
      key: "plan",
      text: "# Go",
    });
  });

  test("invisible characters are escapes in the JSON editor, and themselves in the answer", () => {
    const asked = request({ toolName: "Read", input: { file_path: "/a\u202Eb\u{E0041}", limit: 3 } });
    const { text } = editableOf(asked);
    expect(text).toContain("/a\\u202eb\\udb40\\udc41");
    expect(parseEditedInput(asked, text)).toEqual({ ok: true, value: asked.input });
  });

  test("an answer contains an edited input, and omits an unchanged one", () => {
    const { input } = request();
    expect(allowWith({ input }, { ...input })).toEqual({ decision: "allow" });
    expect(allowWith({ input }, { command: "ls" })).toEqual({ decision: "allow", updatedInput: { command: "ls" } });
  });

  test.each([
    [{ decision: "allow" }, {}, "Allowed."],
    [{ decision: "allow", updatedInput: {} }, {}, "Allowed with your changes."],
    [{ decision: "allow_for_session" }, {}, "Allowed. Until the session ends also allowed: Bash(npm test)."],
    [{ decision: "deny", message: "No" }, {}, "Denied, with your message."],
    [{ decision: "deny" }, { type: "plan" }, "Sent back to planning."],
    [{ decision: "allow", answers: {} }, { type: "question" }, "Answered."],
    [{ decision: "allow", updatedInput: {} }, { type: "plan" }, "Plan approved with your changes."],
  ] as const)("the confirmation of a sent answer fits %j", (body, changes, words) => {
    expect(doneWords(request(changes), body)).toBe(words);
  });
});

describe("questions", () => {
  const one: Question = {
    question: "Which?",
    header: "",
    multiSelect: false,
    options: [
      { label: "A", description: "" },
      { label: "B", description: "" },
    ],
  };
  const many: Question = { ...one, question: "What all?", multiSelect: true };

  test("questions are read from a tool's input that also contains invalid entries", () => {
    expect(questionsIn({ questions: [{ ...one, x: 1 }, 3, { question: 4, options: [null] }] })).toEqual([
      one,
      { question: "", header: "", multiSelect: false, options: [] },
    ]);
    expect(questionsIn({ questions: "?" })).toEqual([]);
  });

  test("one answer is a text and several are a list; each question needs an answer", () => {
    const picked = withPick(one, withPick(one, NO_CHOICE, 0), 1);
    const both = withPick(many, withPick(many, NO_CHOICE, 1), 0);
    expect(answersOf([one, many], [picked, both])).toEqual({
      answers: { "Which?": "B", "What all?": ["A", "B"] },
      missing: [],
    });
    expect(answersOf([one, many], [NO_CHOICE, both])).toMatchObject({ missing: [0] });
    expect(withPick(many, both, 0).picked).toEqual([1]);
  });

  test("custom words replace the answer to a single choice, and are added to several answers", () => {
    const own = { ...withOther(one, withPick(one, NO_CHOICE, 0), true), other: " mine " };
    expect(answersOf([one], [own]).answers).toEqual({ "Which?": "mine" });
    const joined = { ...withOther(many, withPick(many, NO_CHOICE, 0), true), other: "mine" };
    expect(answersOf([many], [joined]).answers).toEqual({ "What all?": ["A", "mine"] });
    expect(answersOf([many], [{ ...joined, other: " " }]).missing).toEqual([0]);
    expect(withPick(one, own, 1)).toMatchObject({ picked: [1], isOther: false });
  });

  test("a question without options takes words, and any question text can be a key", () => {
    const free = { ...one, question: "__proto__", options: [] };
    const { answers } = answersOf([free], [{ ...NO_CHOICE, other: "x" }]);
    expect(Object.entries(answers)).toEqual([["__proto__", "x"]]);
  });
});

describe("the texts about approvers", () => {
  beforeAll(() => void (approvers.value = Object.fromEntries(APPROVERS.map(({ name, words }) => [name, words]))));

  test.each([
    [{ behavior: "allow", by: "console" }, true, "Allowed by you"],
    [{ behavior: "allow", by: "console" }, false, "Allowed in the console"],
    [{ behavior: "deny", by: "rule", rule: "Bash(rm:*)" }, false, "Denied by the rule Bash(rm:*)"],
    [{ behavior: "deny", by: "timeout" }, false, "Denied because it was not answered in time"],
    [{ behavior: "allow", by: "caller" }, true, "Allowed by the calling model"],
    [{ behavior: "allow", by: "console", toolName: "AskUserQuestion" }, true, "Answered by you"],
    [{ behavior: "deny", by: "user", toolName: "ExitPlanMode" }, false, "Sent back by the person at the client"],
    [{ behavior: "allow", by: "approver-of-another-server" }, false, "Allowed by approver-of-another-server"],
    [{ behavior: "deny", by: "constructor" }, false, "Denied by constructor"],
  ] as const)("the answer %j is described with its approver", (decided, mine, words) => {
    expect(decidedWords({ toolName: "Bash", ...decided }, mine)).toBe(words);
  });

  test("the next approvers of a request are named in order", () => {
    expect(laterApprovers("console", ["user", "console", "webhook", "caller"])).toBe(
      "the webhook, then the calling model",
    );
    expect(laterApprovers("caller", ["console", "caller"])).toBe("");
  });

  test("a page without the right to answer says why, and names the operator's options", () => {
    expect(whyReadOnly({ scopes: ["read", "approve"] })).toBeUndefined();
    expect(whyReadOnly({ scopes: ["approve"] }, ["user", "caller"])).toContain("--approvals user,console,caller.");
    expect(whyReadOnly({ scopes: ["approve"] }, [])).toMatch(/^No one can answer requests.*--approvals console\.$/);
    expect(whyReadOnly({ scopes: ["read"] }, ["console"])).toContain("scope approve");
  });
});

describe("the list of requests", () => {
  test("a closed request stays in the list for 6 s; if open again, it is listed once", () => {
    const [one, two] = [request({ createdAt: 2_000 }), request({ requestId: "r2" })];
    const first = updateShown([], [one, two], 0);
    const second = updateShown(first, [two], 1_000);
    expect(second).toEqual([{ request: two }, { request: one, goneAt: 1_000 }]);
    expect(updateShown(second, [two], 6_999)).toEqual(second);
    expect(updateShown(second, [two], 7_000)).toEqual([{ request: two }]);
    expect(updateShown(second, [one, two], 2_000)).toEqual(first);
  });

  test("up to 10 closed requests stay above an open one, so that the open form does not move", () => {
    const numbered = (each: number) => request({ requestId: String(each), createdAt: each });
    const all = Array.from({ length: 13 }, (_, each) => numbered(each));
    const last = all.slice(12);
    let shown = updateShown([], all, 0);
    for (let each = 0; each < 12; each++) shown = updateShown(shown, all.slice(each + 1), each * 10_000);
    expect(shown.map(({ request: { requestId } }) => Number(requestId)).toSorted((a, b) => a - b)).toEqual([
      2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
    ]);
    expect(updateShown(shown, last, 900_000)).toHaveLength(11);
    expect(updateShown(shown, [], 900_000)).toEqual([{ request: last[0], goneAt: 900_000 }]);
  });

  test("the list of requests is grouped by session, the oldest first", () => {
    const open = [
      request({ requestId: "c", createdAt: 3 }),
      request({ requestId: "b", sessionId: "s2", createdAt: 2 }),
      request({ requestId: "a", createdAt: 1 }),
    ];
    const groups = groupBySession(updateShown([], open, 0));
    expect(groups.map(({ sessionId, shown }) => [sessionId, ...shown.map((each) => each.request.requestId)])).toEqual([
      ["s1", "a", "c"],
      ["s2", "b"],
    ]);
  });

  test("requests of the same time keep their places when one is answered, or when the input is in another order", () => {
    const all = [request(), request({ requestId: "r2", eventId: 8 }), request({ sessionId: "s2" })];
    const placesOf = (shown: ReturnType<typeof updateShown>) =>
      shown.map((each) => [each.request.sessionId, each.request.eventId]);
    const inPlace = [
      ["s1", 7],
      ["s1", 8],
      ["s2", 7],
    ];
    const before = updateShown([], all, 0);
    expect(placesOf(before)).toEqual(inPlace);
    expect(placesOf(updateShown(before, all.toReversed(), 500))).toEqual(inPlace);
    for (const answered of all) {
      const open = all.filter((each) => each !== answered);
      expect(placesOf(updateShown(before, open, 1_000))).toEqual(inPlace);
    }
  });
});

describe("misdirected presses", () => {
  const box = (top: number) => ({ top, bottom: top + 100, left: 0, right: 500 });
  const POINT = { x: 50, y: 60 };
  const at = (now: number, hand: Hand = POINT, scrolled = 0) => ({ hand, now, scrolled });
  /** Returns a guard of two cards shown since time 0, with the pointer on the first. */
  const settled = () => {
    const guard = new MisclickGuard();
    guard.note("a", box(0), at(0));
    guard.note("b", box(200), at(0));
    return guard;
  };

  test("a press is misdirected within 400 ms of the card's appearance, by pointer and by key", () => {
    const guard = settled();
    expect(guard.doubtOf("a", POINT, 399)).toBe("new");
    expect(guard.doubtOf("a", undefined, 399)).toBe("new");
    expect(guard.doubtOf("a", POINT, 400)).toBeUndefined();
  });

  test("a press is misdirected on a card that has moved under the pointer, not on another moved card", () => {
    const guard = settled();
    guard.note("a", box(-90), at(1_000));
    guard.note("b", box(20), at(1_000));
    expect(guard.doubtOf("b", POINT, 1_399)).toBe("moved");
    expect(guard.doubtOf("b", undefined, 1_399)).toBeUndefined();
    expect(guard.doubtOf("b", POINT, 2_000)).toBeUndefined();
    guard.note("b", box(300), at(3_000));
    expect(guard.doubtOf("b", { x: 50, y: 350 }, 3_001)).toBeUndefined();
    // Touch does not hover, so the next point is unknown.
    guard.note("b", box(200), at(4_000, "anywhere"));
    expect(guard.doubtOf("b", { x: 50, y: 250 }, 4_399)).toBe("moved");
  });

  test("a press is not misdirected on a card that scrolls, or stays in place while the page grows", () => {
    const guard = settled();
    guard.note("a", box(-150), at(1_000, POINT, 150));
    guard.note("b", box(50), at(1_000, POINT, 150));
    expect(guard.doubtOf("b", POINT, 1_001)).toBeUndefined();
    guard.note("b", box(50.5), at(2_000, POINT, 400));
    expect(guard.doubtOf("b", POINT, 2_001)).toBeUndefined();
  });

  test("the second press of a double click or of a key is misdirected if it falls on the next request", () => {
    const guard = settled();
    expect(guard.doubtOf("a", POINT, 1_000)).toBeUndefined();
    expect(guard.doubtOf("b", { x: 55, y: 61 }, 1_500)).toBe("moved");
    expect(guard.doubtOf("b", POINT, 1_800)).toBeUndefined();
    expect(guard.doubtOf("a", undefined, 3_000)).toBeUndefined();
    guard.focus("b", 3_300);
    expect(guard.doubtOf("b", undefined, 3_650)).toBe("focused");
    expect(guard.doubtOf("b", undefined, 4_300)).toBeUndefined();
  });

  test("a press is not misdirected if the hand goes on to the next request at once", () => {
    const guard = settled();
    expect(guard.doubtOf("a", POINT, 1_000)).toBeUndefined();
    guard.focus("b", 1_010);
    expect(guard.doubtOf("b", { x: 50, y: 260 }, 1_011)).toBeUndefined();
  });
});
