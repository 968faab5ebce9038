import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

import type { SessionEvent } from "../../src/domain/event.ts";
import type { SessionState } from "../../src/domain/session.ts";
import { receiptEvent } from "../kit/browser/evidence.ts";
import { addSession, id, NOW, promptEvent, runSessions, seed } from "../kit/clients/sessions-command.ts";
import { withCaller } from "../kit/sessions/open-request.ts";

/** Tests of `sessions show`, which reads the store alone. */

const root = mkdtempSync(join(tmpdir(), "ccm-show-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const [BUSY, CLOSED, DONE, LIMITED, WAITING] = [id(1), id(2), id(3), id(4), id(5)];
const RESET = "2030-01-01T00:00:00.000Z";

const asked: SessionEvent = {
  type: "permission.asked",
  data: { requestId: "r1", kind: "permission", toolName: "Bash", input: { command: "rm -r x" }, toolUseId: "u" },
};
const request = (requestId: string, eventId: number, expiresAt: number): SessionState["requests"][number] => ({
  requestId,
  kind: "permission",
  toolName: "Bash",
  eventId,
  seenWhole: true,
  ...withCaller(NOW, expiresAt),
});
const waiting = (promptId: string, held: boolean): SessionState["queue"][number] => ({ promptId, eventId: 1, held });
const TURN_ENDED = {
  turnId: "t",
  outcome: "failed",
  isError: true,
  durationMs: 90_000,
  durationApiMs: 1,
  numTurns: 2,
  costUsd: 1.5,
  sessionTurns: 2,
  sessionCostUsd: 1.5,
} as const;
const evidence = { resultEventId: 2, verificationEventId: 3, receiptEventId: 4, message: "Over budget." };
const ended: SessionEvent = { type: "turn.ended", data: { ...TURN_ENDED, ...evidence } };
const commands = [{ command: "npm test", exit: 1, ms: 5, tail: "" }];
const verified: SessionEvent = {
  type: "verification.ended",
  data: { turnId: "t", verification: { status: "failed", attempts: 2, of: 2, commands } },
};
const files = [{ path: "a.ts", change: "deleted" as const, by: ["tree"] }];
const result: SessionEvent = { type: "message", data: { message: { type: "result", result: "half done" } } };

let store: string[];
beforeAll(async () => {
  store = await seed(join(root, "store.db"), async (node) => {
    await addSession(node, BUSY, {
      events: [promptEvent("go"), asked],
      state: {
        requests: [request("r1", 2, NOW + 3_600_000), request("r2", 1, NOW - 1000)],
        queue: [waiting("a", false), waiting("b", true)],
        background: [{ id: "b1", description: "watch", type: "shell" }],
        chosen: { model: "opus" },
        reported: { model: "claude-opus-x", permissionMode: "plan" },
        process: { phase: "live", id: "p", since: NOW, pid: 12, startedAt: "never" },
        processCount: 3,
      },
    });
    await addSession(node, CLOSED, {
      state: { closed: { reason: "cancelled", by: "someone", at: NOW, message: "enough" } },
    });
    await addSession(node, DONE, {
      events: [promptEvent("go"), result, verified, receiptEvent({ files }), ended],
      state: { lastTurnEventId: 5, lastOutcome: "failed", totals: { turns: 2, costUsd: 1.5 } },
    });
    const limit = { window: "five_hour", resetsAt: Date.parse(RESET) };
    const limited = { ...TURN_ENDED, errorSubtype: "usage_limit", limit, message: "Limit." };
    await addSession(node, LIMITED, {
      events: [promptEvent("go"), { type: "turn.ended", data: limited }],
      state: { lastTurnEventId: 2, lastOutcome: "failed" },
    });
    await addSession(node, WAITING, {
      events: [promptEvent("go")],
      state: { queue: [waiting("a", false)], waiting: { kind: "budget", until: Date.parse(RESET), since: NOW } },
    });
  });
});

const show = async (...args: string[]) => (await runSessions(["show", ...args, ...store])).stdout;

it("`sessions show` reports open requests with the time left, waiting prompts, and background tasks", async () => {
  const told = await show(BUSY);
  expect(told).toContain("Model       claude-opus-x\nPermissions plan\n");
  // The row has a live process, but its server is gone.
  expect(told).toContain("Process     none: it ended with its server\n");
  expect(told).toContain("Waiting     2 prompts, 1 held until released\n");
  expect(told).toContain("Background  watch\n");
  expect(told).toMatch(
    /Open requests:\n {2}r1 {2}Bash rm -r x \(is denied in 5\dm\)\n {2}r2 {2}Bash \(is overdue\)\n$/,
  );
  expect(JSON.parse(await show(BUSY, "--json"))).toMatchObject({
    requests: [
      { requestId: "r1", about: "rm -r x" },
      { requestId: "r2", about: "" },
    ],
    promptsWaiting: 2,
    promptsHeld: 1,
    background: [{ description: "watch" }],
  });
});

it("`sessions show` says who ended a session, and why", async () => {
  expect(await show(CLOSED)).toContain("Status      cancelled, by someone: enough\n");
});

it("`sessions show` reports how the last turn ended, its result, and the server's message", async () => {
  const told = await show(DONE);
  expect(told).toMatch(
    /\n\nLast turn: failed, 2 model calls in 1m\nverification failed, run 2 of 2: npm test exit 1\nreceipt: 1 file \(1 deleted\)\n\nhalf done\n\nOver budget\.\n$/,
  );
  expect(JSON.parse(await show(DONE, "--json"))).toMatchObject({
    result: { text: "half done\n\nOver budget.", outcome: "failed" },
    verification: { status: "failed", commands },
    receipt: { files },
    promptsWaiting: 0,
  });
});

it("`sessions show` and `sessions list` say why work stands still, and when the limit of a turn resets", async () => {
  expect(await show(LIMITED)).toContain(
    `Last turn: failed, 2 model calls in 1m\nLimit of the 5-hour window, resets ${RESET}\n`,
  );
  const limit = { errorSubtype: "usage_limit", window: "five_hour", resetsAt: RESET };
  expect(JSON.parse(await show(LIMITED, "--json"))).toMatchObject({ result: { text: "Limit.", ...limit } });
  const money = "waits, because the money of the day is spent or reserved";
  expect(await show(WAITING)).toContain(`Status      idle: ${money}, until ${RESET}\n`);
  const wait = { waiting: { kind: "budget", until: RESET } };
  expect((await runSessions(["list", ...store])).stdout).toMatch(/ {2}idle: budget {2}/);
  const listed = JSON.parse((await runSessions(["list", "--json", ...store])).stdout) as { sessions: object[] };
  expect(listed.sessions).toContainEqual(expect.objectContaining({ sessionId: WAITING, ...wait }));
});
