import { describe, expect, it } from "vitest";
import type { SessionPolicy } from "../../src/domain/approvals/session-policy.ts";
import type { CommandOf } from "../../src/domain/command.ts";
import { policyOfProcess } from "../../src/engine/policy/turn-policy.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { heard } from "../kit/step/evidence-cases.ts";
import { BEGUN_POLICY, requestOf, resultSignal, SECOND, SHELL_TASK, Walk } from "../kit/step/walk.ts";

/** Prompts of clients with a stricter policy, or another environment, than the client that started the session. */

const UP: AgentSignal[] = [{ type: "admitted" }, { type: "started", pid: 4711, resumed: true }, { type: "ready" }];
const GONE: AgentSignal = { type: "exited", code: 0, signal: null };

type Sent = Partial<CommandOf<"prompt">["data"]>;
const under = (over: Partial<SessionPolicy>, more: Sent = {}): Sent => ({
  policy: { ...BEGUN_POLICY, ...over },
  ...more,
});
const PLAIN = under({});
const DENIES = under({ rules: { allow: [], ask: [], deny: ["WebFetch"] } });
const SANDBOXED = under({ sandbox: "required", sandboxDomains: ["a.example"] });

const begun = () => new Walk().promptWith("p1", PLAIN).hear(...UP);
/** Ends the running prompt in Claude Code. */
const complete = (walk: Walk) =>
  walk.hear(resultSignal({ promptIds: walk.state.turn?.awaiting ?? [] }), { type: "idle" });
const idle = () => complete(begun());
const countEffects = (walk: Walk, type: string) => walk.last.effects.filter((effect) => effect.type === type).length;

/** Runs a prompt to its end. Returns true if the prompt restarted the process. */
function run(walk: Walk, id: string, sent: Sent): boolean {
  walk.promptWith(id, sent);
  const isStopped = countEffects(walk, "stop") === 1;
  if (isStopped) walk.hear(GONE, ...UP);
  complete(walk);
  return isStopped;
}

describe("a prompt of a stricter client", () => {
  it("a stricter prompt restarts an idle process once, under both policies, and a looser one does not loosen it", () => {
    const walk = idle();
    expect(run(walk, "p2", DENIES)).toBe(true);
    expect(policyOfProcess(walk.policy, walk.state).rules.deny).toEqual(["WebFetch"]);
    expect([run(walk, "p3", PLAIN), run(walk, "p4", DENIES), run(walk, "p5", {})]).toEqual([false, false, false]);
    expect(policyOfProcess(walk.policy, walk.state).rules.deny).toEqual(["WebFetch"]);
  });

  it("two clients with different policies restart the process once each, then no more", () => {
    const walk = idle();
    expect([run(walk, "p2", DENIES), run(walk, "p3", SANDBOXED)]).toEqual([true, true]);
    expect(policyOfProcess(walk.policy, walk.state)).toMatchObject({
      sandbox: "required",
      rules: { deny: ["WebFetch"] },
    });
    const next = [DENIES, SANDBOXED, PLAIN, DENIES].map((sent, index) => run(walk, `q${String(index)}`, sent));
    expect(next).toEqual([false, false, false, false]);
  });

  it("a prompt after the process has ended starts a new one under its own policy alone", () => {
    const walk = idle();
    run(walk, "p2", DENIES);
    walk.due().hear(GONE).promptWith("p3", SANDBOXED);
    expect(walk.state.process).toMatchObject({ policy: { sandbox: "required" } });
    expect(policyOfProcess(walk.policy, walk.state).rules.deny).toEqual([]);
  });

  it("a prompt that differs only in times, approvers or answers needs no new process, and has them for its turn", () => {
    const over = { callerApproves: "none", approvalChain: ["user"] } as const;
    const walk = idle().promptWith(
      "p2",
      under({ ...over, approvalChain: ["user"], limits: { ...BEGUN_POLICY.limits, turnMaxMs: 7 * SECOND } }),
    );
    expect(countEffects(walk, "stop")).toBe(0);
    walk.hear({ type: "asked", request: requestOf("a1") }).due();
    expect(walk.summary).toContain("permission.answered(deny timeout)");
    walk.due();
    expect(walk.state.turn?.stopping).toMatchObject({ reason: "time_limit" });
    walk
      .hear(GONE)
      .promptWith("p3", PLAIN)
      .hear(...UP, { type: "asked", request: requestOf("a2") })
      .due();
    expect(walk.summary).toBe("request.passed(user caller time)");
  });

  it("a stricter prompt waits behind background work with a notice, while prompts that fit the process go on", () => {
    const walk = begun().hear({ type: "background", tasks: [SHELL_TASK] });
    complete(walk).promptWith("p2", DENIES);
    expect(walk.summary).toBe("prompt.queued notice ok");
    expect(walk.log.at(-1)).toMatchObject({ data: { kind: "waiting" } });
    expect(run(walk, "p3", PLAIN)).toBe(false);
    expect(walk.state.queue.map(({ promptId }) => promptId)).toEqual(["p2"]);
    walk.hear({ type: "background", tasks: [] });
    expect([walk.summary, walk.state.turn?.pending]).toEqual(["background.changed turn.started(prompt) stop", true]);
    expect(walk.hear(GONE).summary).toBe("process.exited(expected) start push");
  });

  it("a stricter prompt runs when the process has ended with its background work", () => {
    const walk = begun().hear({ type: "background", tasks: [SHELL_TASK] });
    complete(walk).promptWith("p2", DENIES).hear({ type: "exited", code: 1, signal: null });
    expect(walk.summary).toBe("process.exited background.changed turn.started(prompt) start push");
  });

  it("a waiting stricter prompt is held if the background work was lost with its server", () => {
    const walk = begun().hear({ type: "background", tasks: [SHELL_TASK] });
    complete(walk).promptWith("p2", DENIES).recover();
    expect(walk.state).toMatchObject({ turn: null, process: { phase: "none" }, queue: [{ held: true }] });
    expect(walk.command("queue", { do: "release", by: "caller" }).summary).toBe("turn.started(prompt) start push ok");
  });

  it("a stricter prompt may not join a running turn, and waits behind it; an equal prompt joins", () => {
    const walk = begun().promptWith("p2", { ...DENIES, whenBusy: "steer" });
    expect([walk.summary, walk.last.effects.length]).toEqual(["PERMISSION_DENIED", 1]);
    expect(walk.promptWith("p3", { ...DENIES, whenBusy: "queue" }).summary).toBe("prompt.queued notice ok");
    expect(walk.promptWith("p4", { ...PLAIN, whenBusy: "steer" }).summary).toBe("prompt.queued prompt.steered push ok");
    expect(complete(walk).summary).toBe("turn.ended(done) turn.started(prompt) stop");
  });

  it("a stricter prompt is refused if no other process can go on with the session", () => {
    const walk = new Walk({ ephemeral: true }, idle()).promptWith("p2", DENIES);
    expect(walk.summary).toBe("PERMISSION_DENIED");
    expect(walk.promptWith("p3", PLAIN).summary).toBe("prompt.queued turn.started(prompt) push ok");
  });

  it("the policy of a prompt holds for turns that Claude Code begins by itself, until the next prompt", () => {
    const walk = idle();
    run(walk, "p2", under({ approvalChain: [] }));
    walk.hear({ type: "busy", id: "self" }, { type: "asked", request: requestOf("a1") });
    expect(walk.summary).toContain("permission.answered(deny");
  });
});

describe("the environment of a process", () => {
  const starts = (walk: Walk) => walk.last.effects.find((effect) => effect.type === "start");

  it("a process keeps the environment of the client whose prompt started it", () => {
    const walk = new Walk().promptWith("p1", { environmentId: "e1" });
    expect(starts(walk)).toMatchObject({ environmentId: "e1" });
    walk.hear({ type: "admitted" }, { type: "started", resumed: false, environmentId: "e1" }, { type: "ready" });
    expect(walk.state.environmentId).toBe("e1");
    walk.promptWith("p2", { environmentId: "e2", whenBusy: "queue" });
    complete(walk);
    expect([starts(walk), walk.state.environmentId]).toEqual([undefined, "e1"]);
    walk.hear({ type: "exited", code: 1, signal: null }).promptWith("p3", { environmentId: "e2" });
    expect(starts(walk)).toMatchObject({ environmentId: "e2" });
    walk.hear({ type: "admitted" }, { type: "started", resumed: true });
    expect(walk.state.environmentId).toBeUndefined();
  });
});

describe("senders in the state", () => {
  it("the state keeps each sender once, and none whose prompts are over", () => {
    const walk = begun();
    for (const id of ["p2", "p3", "p4"]) walk.promptWith(id, { ...DENIES, environmentId: "e1", whenBusy: "queue" });
    expect(Object.keys(walk.state.senders ?? {})).toHaveLength(1);
    walk.command("interrupt", { by: "caller" }).hear({ type: "idle" });
    walk.command("queue", { do: "drop", by: "caller" });
    expect(walk.state).not.toHaveProperty("senders");
  });

  it("the state stays within 16 KiB with a full queue of eight senders, and a ninth sender is refused", () => {
    const limits = { noDialog: true, noCaller: true, endWithClient: true, turnMs: 600_000, requestTimeoutMs: 60_000 };
    const walk = begun();
    const sent = (index: number): Sent => ({
      ...under({
        rules: { allow: [], ask: [], deny: [`Bash(curl https://${String(index % 8)}.example/*)`, "WebFetch"] },
      }),
      environmentId: String(index % 8).repeat(32),
      limits,
      whenBusy: "queue",
    });
    const uuid = (index: number) => `00000000-0000-4000-8000-0000000000${String(index).padStart(2, "0")}`;
    for (let index = 0; index < 50; index += 1) walk.promptWith(uuid(index), sent(index));
    expect(walk.state.queue).toHaveLength(50);
    expect(JSON.stringify(walk.state).length).toBeLessThan(16_384);
    walk.command("interrupt", { by: "caller" }).command("queue", { do: "drop", by: "caller" });
    for (let index = 0; index < 8; index += 1) walk.promptWith(uuid(index), sent(index));
    expect(walk.promptWith("more", { environmentId: "another", whenBusy: "queue" }).summary).toBe("SESSION_BUSY");
    expect(walk.promptWith("known", sent(3)).summary).toBe("prompt.queued notice ok");
    expect(walk.promptWith("own", { whenBusy: "queue" }).summary).toBe("prompt.queued ok");
  });
});

describe("a verification on demand by a stricter client", () => {
  const verify = { commands: ["make check"], attempts: 1, timeoutMs: 60 * SECOND };
  const turnId = "00000000-0000-4000-8000-000000000001";
  const demand = (walk: Walk, sent: Sent) => walk.later(1).command("verify", { by: "caller", turnId, verify, ...sent });

  it("its rules count for the commands, and a looser process ends before it could repair", () => {
    const walk = demand(
      idle(),
      under({ rules: { allow: [], ask: [], deny: ["Bash(make:*)"] } }, { limits: { noDialog: true } }),
    );
    expect(countEffects(walk, "stop")).toBe(1);
    expect(walk.state.noDialog).toBe(true);
    heard(walk, "commands allowed");
    expect(walk.log.findLast(({ type }) => type === "verification.ended")).toMatchObject({
      data: { verification: { status: "denied" } },
    });
  });

  it("a client with the terms of the session keeps the process, and the last prompt's sender no longer counts", () => {
    const walk = idle();
    run(walk, "p2", under({ rules: { allow: [], ask: [], deny: ["Bash(make:*)"] } }));
    demand(walk, PLAIN);
    expect(countEffects(walk, "stop")).toBe(0);
    heard(walk, "commands allowed");
    expect(walk.log.at(-1)).toMatchObject({ type: "verification.started" });
  });
});
