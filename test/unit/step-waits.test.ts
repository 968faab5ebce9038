import { describe, expect, it } from "vitest";
import { accountKey } from "../../src/domain/ledger.ts";
import { mergeReport, type WindowReport } from "../../src/domain/plan.ts";
import type { Policy } from "../../src/engine/policy/policy.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { heard } from "../kit/step/evidence-cases.ts";
import { OVERAGE, over, refused, RESERVE, USE, used } from "../kit/step/limit-cases.ts";
import { ACCOUNT, AGENT_TASK, BEGUN_POLICY, requestOf, resultSignal, SHIM, Walk } from "../kit/step/walk.ts";

/** Tests what meets a turn that waits at a limit: subagents at work, requests to Claude Code, other owners, odd reports. */

const WAITS = { onLimit: "wait" } as const;
const idle: AgentSignal = { type: "idle" };
const killed: AgentSignal = { type: "exited", code: null, signal: "SIGKILL" };

const running = (policy: Partial<Policy>, shim = {}) =>
  new Walk(policy)
    .prompt("p1")
    .hear(
      { type: "admitted" },
      { type: "started", pid: 1, startedAt: "7", resumed: false, ...shim },
      { type: "ready" },
    );
/** Returns a turn that waits while a subagent of the turn goes on. */
const withAgent = () =>
  running({ ...WAITS, ...RESERVE }).hear({ type: "background", tasks: [AGENT_TASK] }, refused("p1"), idle);
const gone = () =>
  running({ ...WAITS, use: USE })
    .hear(refused("p1"), idle)
    .hear(killed);

describe("a stop of a turn that waits while its subagent works", () => {
  const toolUse: AgentSignal = { type: "message", message: {}, toolUseId: "t1" };
  it.each([
    ["requests are paid beyond the plan", () => withAgent().hear(OVERAGE), "overage"],
    ["the rest of the week is reserved", () => used(withAgent(), "seven_day", 81).hear(toolUse), "plan_reserve"],
    [
      "the turn has spent its limit",
      () => withAgent().hear({ type: "spent", costUsdTotal: 101, atStart: false }),
      "error_max_budget_usd",
    ],
    [
      "a request is denied and the turn interrupted",
      () =>
        withAgent()
          .hear({ type: "asked", request: requestOf("a1") })
          .command("answer", {
            requestId: "a1",
            by: "caller",
            forSession: false,
            decision: { behavior: "deny", message: "no", interrupt: true },
          }),
      "interrupted",
    ],
  ] as const)("ends the turn at once, without its request being sent again, when %s", (_, stop, errorSubtype) => {
    const walk = stop();
    expect(walk.ended).toMatchObject([{ errorSubtype }]);
    expect(walk.state).toMatchObject({ turn: null });
    expect(over(walk).story).not.toContain("send-again");
  });
});

describe("a turn that waits without a process", () => {
  const environment = (walk: Walk, found: object) =>
    walk.take({ type: "environment", at: walk.at, turnId: walk.state.turn?.id ?? "", ...found });

  it("goes on with a process that a request to Claude Code has started during the search for an environment", () => {
    const walk = over(gone()).command("control", { by: "caller", request: { do: "usage" } });
    expect(walk.state).toMatchObject({ process: { phase: "starting" }, waiting: { isSearching: true } });
    expect(environment(walk, { environmentId: "e1" }).summary).toBe("notice send-again");
  });

  it("ends with the reason, and can be continued, if the server that goes on with it would refuse its prompt", () => {
    const walk = environment(over(gone()), { environmentId: "e1", refusal: "Not allowed here." });
    expect(walk.ended).toMatchObject([{ errorSubtype: "usage_limit", message: "Not allowed here." }]);
    expect(walk.state).toMatchObject({ turn: null, process: { phase: "none" }, refused: { window: "five_hour" } });
  });

  it("ends when the operator forbids the mode of its session", () => {
    const walk = gone().command("control", { by: "server", request: { do: "suspend", reason: "forbidden" } });
    expect(walk.summary).toBe("turn.ended(interrupted) notice ok");
  });

  it("waits also if its process dies between the refusal and its end", () => {
    const walk = running({ ...WAITS, use: USE }).hear(refused("p1"), killed);
    expect(walk.state).toMatchObject({ turn: { id: "p1" }, waiting: { kind: "usage_limit" } });
  });
});

it("an interrupt of a turn that is held back says that its prompt was not given", () => {
  const walk = used(new Walk({ ...RESERVE, ...WAITS }), "five_hour", 86).prompt("p1");
  walk.command("interrupt", { by: "caller" });
  expect(walk.ended).toMatchObject([{ message: expect.stringMatching(/by caller\. .*not given/) as string }]);
});

it("a prompt that is held back is given to no process that another owner takes over", () => {
  const walk = running({ ...RESERVE, ...WAITS }, { shim: SHIM }).hear(resultSignal({ promptIds: ["p1"] }), idle);
  used(walk, "five_hour", 86).prompt("p2");
  expect(walk.take({ type: "attached", at: walk.at }).summary).toBe("notice reattach");
});

it("a turn that reports a limit holds the prompts behind it, except those that end with their client", () => {
  const bound = { whenBusy: "queue", limits: { endWithClient: true } } as const;
  const walk = running({ use: USE }).promptWith("p2", { whenBusy: "queue" });
  expect(walk.hear(refused("p1"), idle).summary).toBe("turn.ended(failed usage_limit)");
  expect(walk.state).toMatchObject({
    queue: [{ promptId: "p2", held: true }],
    refused: { prompt: { promptId: "p1" } },
  });
  const other = running({ use: USE }).promptWith("p2", bound).hear(refused("p1"), idle);
  expect(other.summary).toBe("turn.ended(failed usage_limit) turn.started(prompt) push");
});

describe("action continue of a client with stricter terms than the process", () => {
  const stricter = { ...BEGUN_POLICY, rules: { allow: [], ask: [], deny: ["WebFetch"] } };
  const continued = (walk: Walk) =>
    walk.later(7200).command("continue", { by: "caller", turnId: "t2", policy: stricter }).summary;

  it("goes on with another process, unless the present one has to stay", () => {
    const reported = () => running({ use: USE }).hear(refused("p1"), idle);
    expect(continued(reported())).toContain("stop ok");
    expect(continued(reported().hear({ type: "background", tasks: [AGENT_TASK] }))).toBe("SESSION_BUSY");
    expect(continued(new Walk({ use: USE, ephemeral: true }, reported()))).toBe("PERMISSION_DENIED");
  });
});

it("a verification on demand has nothing repaired while the rest of the window is reserved", () => {
  const verify = { commands: ["make check"], attempts: 1, timeoutMs: 60_000 };
  const walk = running(RESERVE).hear(resultSignal({ promptIds: ["p1"] }), idle);
  used(walk, "five_hour", 86).command("verify", { by: "caller", turnId: "t2", verify });
  heard(heard(walk, "commands allowed"), "command failed");
  expect(walk.ended.at(-1)).toMatchObject({ errorSubtype: "verification_failed" });
  expect(walk.ended.at(-1)?.message).toContain("planReserve");
});

describe("a window with an odd reset", () => {
  const start = (window: WindowReport, laterS: number) => {
    const walk = new Walk(RESERVE);
    const report = { isUsingOverage: false, windows: [window] };
    walk.enter(accountKey(ACCOUNT.id), mergeReport(undefined, ACCOUNT, { report, at: walk.at }));
    return walk.later(laterS).prompt("p1").status;
  };
  const HOUR_S = 3_600;
  const rejection = { window: "five_hour", isRejected: true, source: "rejection" } as const;
  const far = { window: "seven_day", usedPercent: 90, resetsAt: 32_503_680_000_000, source: "headers" } as const;

  it("locks no session out for longer than an hour without a reset, or than a whole window", () => {
    expect([start(rejection, 1), start(rejection, HOUR_S)]).toEqual(["idle", "running"]);
    expect([start(far, 167 * HOUR_S), start(far, 168 * HOUR_S)]).toEqual(["idle", "running"]);
  });
});

it("a session whose held prompts are dropped at the weekly line no longer waits", () => {
  const toolUse: AgentSignal = { type: "message", message: {}, toolUseId: "t1" };
  const ended = used(running(RESERVE).promptWith("p2", { whenBusy: "queue" }), "seven_day", 81).hear(
    toolUse,
    resultSignal({ promptIds: ["p1"], isError: true }),
    idle,
  );
  expect(ended.state).toMatchObject({ turn: null, waiting: { kind: "plan_reserve" }, queue: [{ held: true }] });
  ended.command("queue", { do: "drop", by: "caller" });
  expect(ended.state).toMatchObject({ queue: [] });
  expect(ended.state.waiting).toBeUndefined();
});
