import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SessionStatus } from "../../src/domain/session.ts";
import { type FailureCategory, TurnOutcome } from "../../src/domain/turn.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { typeOfEnd } from "../../src/view/result.ts";
import { inputFor, STATE_NAMES, walkTo } from "../kit/step/cases.ts";
import { heard } from "../kit/step/evidence-cases.ts";
import { BUDGETS, OVERAGE, refused, RESERVE, spent, used } from "../kit/step/limit-cases.ts";
import { ABORTED, API_ERROR, requestOf, resultSignal, SECOND, summarizeStep, Walk } from "../kit/step/walk.ts";

/** Compares each table of `docs/states.md` with the behaviour of `step` and `statusOf`. */

const PAGE = readFileSync(new URL("../../docs/states.md", import.meta.url), "utf8");

/** Returns the rows of the table whose header begins with `head`, without the backticks of cells. */
function table(...head: string[]): string[][] {
  const lines = PAGE.split("\n").map((line) => line.split("|").slice(1, -1));
  const rows = lines.map((cells) => cells.map((cell) => cell.trim().replaceAll("`", "")));
  const start = rows.findIndex((cells) => head.every((word, n) => cells[n] === word));
  const after = rows.slice(start + 2);
  return after.slice(
    0,
    after.findIndex((cells) => cells.length === 0),
  );
}

const IDLE: AgentSignal = { type: "idle" };
const KILLED = { type: "exited", code: null, signal: "SIGKILL" } as const;
const running = (policy = {}) => new Walk(policy).prompt("p1").hear({ type: "ready" });
const queued = (policy: object) =>
  running(policy).promptWith("p2", { whenBusy: "queue", limits: { endWithClient: true } });
const result = (over = {}) => resultSignal({ promptIds: ["p1"], ...over });
const failure = (subtype: string, category: FailureCategory) => ({ subtype, category, message: "It failed." });
const at = (walk: Walk, type: "recovered" | "shutdown") => walk.take({ type, at: walk.at });

/** From a running turn to its end, by cause in the page. */
const ENDS: Readonly<Record<string, (walk: Walk) => Walk>> = {
  "Claude Code is idle after a good result": (walk) => walk.hear(result(), IDLE),
  "a caller interrupted it": (walk) =>
    walk.command("interrupt", { by: "caller" }).hear(result({ ...ABORTED, promptIds: ["p1"] }), IDLE),
  "the server was shut down": (walk) => at(walk, "shutdown"),
  "the session was closed": (walk) => walk.command("close", { by: "caller" }),
  "Claude Code died": (walk) => walk.hear(KILLED),
  "the server that ran it died": (walk) => at(walk, "recovered"),
  "the session was cancelled": (walk) => walk.command("cancel", { by: "caller" }),
};

const CAUSES: Readonly<Record<string, () => Walk>> = {
  ...Object.fromEntries(Object.entries(ENDS).map(([because, end]) => [because, () => end(running())])),
  "the API answered with an error, here 401": () => running().hear(result(API_ERROR), IDLE),
  "the prompt took more than maxTurns": () =>
    running().hear(result({ isError: true, subtype: "error_max_turns", category: "limit" }), IDLE),
  "the turn took longer than the server allows": () =>
    running({ turnMaxMs: 2 * SECOND })
      .due()
      .hear(result(), IDLE),
  "the turn took longer than its timeout": () =>
    running({ turnMs: 2 * SECOND })
      .due()
      .hear(result(), IDLE),
  "the turn spent more than maxBudgetUsd": () =>
    running({ budgetUsd: 1 })
      .hear({ type: "spent", costUsdTotal: 2, atStart: false })
      .hear(result({ ...ABORTED, promptIds: ["p1"] }), IDLE),
  "it passed a bound for unattended work": () =>
    running({ unattended: { requests: "wait", afterMs: SECOND, maxMs: SECOND, maxUsd: 1 } })
      .due()
      .due()
      .hear({ type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" })
      .hear(result({ ...ABORTED, promptIds: ["p1"] }), IDLE),
  "Claude Code gave no sign of life": () => running().due().due().hear(KILLED),
  "Claude Code did not come up within sessionInitTimeoutMs": () =>
    new Walk().prompt("p1").hear({ type: "admitted" }).due().hear(KILLED),
  "Claude Code could not be started": () => new Walk().prompt("p1").hear({ type: "exited", code: 1, signal: null }),
  "commands of its verification still fail at the end": () =>
    heard(
      running({ verify: { commands: ["make check"], attempts: 0, timeoutMs: SECOND } }).hear(result(), IDLE),
      "commands allowed",
      "commands lost",
    ),
  "a hook blocked the prompt": () => running().hear(result({ failure: failure("prompt_blocked", "request") }), IDLE),
  "a hook ended the turn": () => running().hear(result({ failure: failure("hook_stopped", "configuration") }), IDLE),
  "a command such as /compact failed": () =>
    running().hear(result({ failure: failure("command_failed", "request") }), IDLE),
  "the structured output of outputFormat never came": () =>
    running().hear(result({ failure: failure("structured_output_missing", "unknown") }), IDLE),
  "the transcript of the session is missing": () =>
    new Walk().prompt("p1").hear({ ...KILLED, signal: null, error: "It is gone.", subtype: "transcript_missing" }),
  "Claude Code does not know the agent of the session": () =>
    new Walk().prompt("p1").hear({ ...KILLED, signal: null, error: "Unknown.", subtype: "unknown_agent" }),
  "the API refused a request at a limit of the plan": () => running().hear(refused("p1"), IDLE),
  "a reserve kept its prompt from starting": () => used(queued(RESERVE), "five_hour", 86).hear(result(), IDLE),
  "the day's budget kept its prompt from starting": () =>
    spent(queued(BUDGETS), { spentUsd: 8, reserved: { p1: 1 } }).hear(result(), IDLE),
  "it reached the reserve of the weekly window": () =>
    used(running(RESERVE), "seven_day", 81)
      .hear({ type: "message", message: {}, toolUseId: "toolu_1" })
      .hear(result({ ...ABORTED, promptIds: ["p1"] }), IDLE),
  "its requests were paid beyond the plan": () =>
    running(RESERVE).hear(OVERAGE, result({ ...ABORTED, promptIds: ["p1"] }), IDLE),
  "a request was denied with interrupt": () => {
    const decision = { behavior: "deny", message: "no", interrupt: true } as const;
    const asking = running().hear({ type: "asked", request: requestOf("a1") });
    const answered = asking.command("answer", { requestId: "a1", decision, by: "caller", forSession: false });
    return answered.hear(result({ ...ABORTED, promptIds: ["p1"] }), IDLE);
  },
};

describe("docs/states.md", () => {
  it("docs/states.md describes how a turn ends", () => {
    const rows = table("Cause", "Outcome");
    expect(new Set(rows.map(([because]) => because))).toEqual(new Set(Object.keys(CAUSES)));
    const real = rows.map(([because = ""]) => {
      const walk = CAUSES[because]!();
      expect(new Set(walk.ended.map(({ turnId }) => turnId)).size).toBe(walk.ended.length);
      const end = walk.ended.at(-1);
      const { category, code, errorSubtype, isError, outcome } = end!;
      const words = [outcome, walk.status, typeOfEnd(end!), String(isError), errorSubtype, category, code];
      return [because, ...words.map((word) => word ?? "")];
    });
    expect(rows).toEqual(real);
    expect(new Set(rows.map(([, outcome]) => outcome))).toEqual(new Set(TurnOutcome.options));
  });

  it("docs/states.md describes what the end of a turn does to open requests and to waiting prompts", () => {
    const rows = table("Cause", "Open requests are denied by");
    const real = Object.entries(ENDS).map(([because, end]) => {
      const asking = end(running().hear({ type: "asked", request: requestOf("a1") }));
      const by = asking.log.flatMap((event) => (event.type === "permission.answered" ? [event.data.by] : []));
      const self = running().hear(result(), IDLE, { type: "busy", id: "self" });
      return [because, by.join(), findFate(end(self.prompt("p2")), "p2")];
    });
    expect(rows).toEqual(rows.map(([because]) => real.find(([end]) => end === because)));
    expect(rows).toHaveLength(real.length);
  });

  it("docs/states.md describes the meaning of each status", () => {
    const rows = table("Status", "Turn runs");
    expect(rows.map(([status]) => status)).toEqual(SessionStatus.options);
    const yes = (is: boolean) => (is ? "yes" : "no");
    const ofPrompts = STATE_NAMES.map(walkTo).filter((walk) => !letsPromptsWait(walk) && !isLimited(walk));
    for (const row of rows) {
      const walks = ofPrompts.filter((walk) => walk.status === row[0]);
      expect(walks.length).toBeGreaterThan(0);
      const real = walks.map((walk) => {
        const { requests, closed, turn } = walk.state;
        const told = summarizeStep(walk.take(inputFor(walk, "prompt")).last);
        const prompt = told.startsWith("prompt.queued turn.started") ? "run" : told;
        return [row[0], yes(turn !== null), yes(requests.length > 0), prompt, closed ? "closed" : "open"];
      });
      expect(real).toEqual(walks.map(() => row));
    }
  });

  it.each(["idle, above the 5-hour line", "ended at the weekly line", "idle, budget spent"] as const)(
    "docs/states.md describes that a prompt is refused at a limit of the operator: %s",
    (name) => {
      expect(PAGE.replaceAll(/\s+/g, " ")).toContain("keep from starting is refused with `SESSION_BUSY`");
      const walk = walkTo(name);
      expect(summarizeStep(walk.take(inputFor(walk, "prompt")).last)).toBe("SESSION_BUSY");
    },
  );

  it("docs/states.md describes that a prompt waits if its sender could not know of the turn", () => {
    expect(PAGE.replaceAll(/\s+/g, " ")).toContain(
      "A prompt sent during such a turn is not refused: it waits and runs afterwards.",
    );
    const self = STATE_NAMES.map(walkTo).filter(letsPromptsWait);
    expect(new Set(self.map(({ state }) => state.turn?.origin))).toEqual(new Set(["prompt", "self", "verify"]));
    expect(self.map((walk) => summarizeStep(walk.take(inputFor(walk, "prompt")).last))).toEqual(
      self.map(() => "prompt.queued ok"),
    );
  });
});

/** True if a limit of the operator may keep a turn from starting. */
function isLimited({ policy: { use } }: Walk): boolean {
  return use.reserve !== undefined || use.budgets.length > 0;
}

/** True during a turn that is not of a prompt, or whose prompt is done. */
function letsPromptsWait({ state: { turn } }: Walk): boolean {
  return turn !== null && (turn.origin !== "prompt" || turn.settling?.phase === "look");
}

function findFate({ log, state }: Walk, promptId: string): string {
  if (state.turn?.id === promptId) return "run";
  if (state.queue.some((each) => each.promptId === promptId && each.held)) return "are held";
  return log.some((event) => event.type === "prompt.dropped" && event.data.promptId === promptId) ? "are dropped" : "?";
}
