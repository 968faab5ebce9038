import { execFile } from "node:child_process";

import { expect } from "vitest";
import { z } from "zod";

import type { SessionEvent } from "../../../src/domain/event.ts";
import { initialState, type SessionState } from "../../../src/domain/session.ts";
import type { SessionBackend } from "../../../src/engine/ports.ts";
import { openStore } from "../../../src/store/open.ts";
import { TURN_CLOCK } from "../sessions/open-request.ts";

export interface CommandResult {
  status: number | null;
  stdout: string;
  stderr: string;
}

export async function runSessions(args: string[], env: Record<string, string> = {}): Promise<CommandResult> {
  return runProgram(["sessions", ...args], env);
}

/** Runs the built program without a terminal and without settings of this machine. */
export async function runProgram(args: string[], env: Record<string, string> = {}): Promise<CommandResult> {
  const options = { env: { PATH: process.env["PATH"] ?? "", HOME: "/nowhere", ...env }, maxBuffer: 1e9 };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ["dist/cli/main.js", ...args], options, (_, stdout, stderr) =>
      resolve({ status: child.exitCode, stdout, stderr }),
    );
    child.stdin?.end();
  });
}

export const Listed = z.object({
  sessions: z.array(z.looseObject({ sessionId: z.string(), status: z.string(), owned: z.boolean() })),
  more: z.boolean(),
});

export async function listSessions(...args: string[]) {
  const { status, stdout, stderr } = await runSessions(["list", "--json", ...args]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return Listed.parse(JSON.parse(stdout));
}

export const expectedRefusal = (status: number, line: string | RegExp) => ({
  status,
  stdout: "",
  stderr: expect.stringMatching(line) as string,
});

export const HOUR = 3_600_000;
export const NOW = Date.now();
export const id = (n: number): string => `${n.toString(16).padStart(8, "0")}-0000-4000-8000-000000000000`;

/** Writes to a store beside any server, as a node of its own. */
export async function seed(file: string, work: (node: SessionBackend) => Promise<void>): Promise<string[]> {
  const silent = (): void => undefined;
  const node = openStore(
    { kind: "sqlite", file },
    {
      nodeId: "seed",
      process: { pid: process.pid, startedAt: "never" },
      isRunning: async () => Promise.resolve(true),
      clock: { now: () => Date.now(), tick: () => performance.now() },
      log: { debug: silent, info: silent, warn: silent, error: silent },
    },
  );
  await node.leases.heartbeat(60_000);
  await work(node);
  await node.close();
  return ["--store", file];
}

export interface Seeded {
  at?: number;
  cwd?: string;
  events?: SessionEvent[];
  state?: Partial<SessionState>;
  principal?: string;
}

export async function addSession(node: SessionBackend, sessionId: string, seeded: Seeded = {}): Promise<void> {
  const { at = NOW, cwd = "/repo", events = [], principal = "local", state = {} } = seeded;
  await node.rows.create({ id: sessionId, principal, spec: { cwd }, state: initialState(at), at });
  const lease = await node.leases.claim(sessionId);
  if (!lease) throw new Error("not claimed");
  await node.log.append(lease, { events, at, state: { ...initialState(at), ...state, lastEventId: events.length } });
  await node.leases.release(lease);
}

export const promptEvent = (words: string): SessionEvent => ({
  type: "prompt.queued",
  data: { promptId: "p", text: words },
});
export const assistantEvent = (words: string): SessionEvent => ({
  type: "message",
  data: { message: { type: "assistant", message: { content: [{ type: "text", text: words }] } } },
});
export const turn: SessionState["turn"] = {
  id: "t",
  origin: "prompt",
  startedAt: NOW,
  clock: TURN_CLOCK,
  awaiting: ["p"],
  pending: false,
  rerun: false,
  durationApiMs: 0,
  numTurns: 0,
  costUsd: 0,
};
