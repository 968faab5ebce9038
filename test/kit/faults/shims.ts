import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { z } from "zod";

import type { Answer } from "../clients/connection.ts";
import type { Server } from "../servers/stdio-server.ts";
import { storedEvents } from "../store/stored.ts";
import type { World } from "../world.ts";

/** Helpers of tests whose daemons hand over turns. */

/** Returns the shims among the parents of a world's processes. A shim without sessions is not found. */
export function shimsOf(world: World): number[] {
  const parents = world.processes().flatMap(({ pid }) => parentOf(pid) ?? []);
  return [...new Set(parents)].filter((pid) => commandOf(pid).includes("shim/shim.js"));
}

function parentOf(pid: number): number | undefined {
  const [, parent] = /^PPid:\s+(\d+)/m.exec(read(`/proc/${String(pid)}/status`)) ?? [];
  return parent === undefined ? undefined : Number(parent);
}

export function commandOf(pid: number): string {
  return read(`/proc/${String(pid)}/cmdline`)
    .replaceAll("\0", " ")
    .trim();
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // The process has ended.
    return "";
  }
}

/** Expects a single shim for the world. */
export function theShim(world: World): number {
  const all = shimsOf(world);
  expect(all).toHaveLength(1);
  return all[0]!;
}

/** Resolves when no process of `pids` runs. */
export async function untilGone(pids: readonly number[]): Promise<void> {
  await vi.waitUntil(() => pids.every((pid) => commandOf(pid) === ""), { timeout: 15_000, interval: 20 });
}

/** Kills the running daemons; resolves with their pids once all are gone. */
export async function killDaemons(world: World): Promise<number[]> {
  const all = world.daemons();
  for (const pid of all) process.kill(pid, "SIGKILL");
  await untilGone(all);
  return all;
}

/** Repeats a call that fails because the daemon died or froze during the call, for up to 60 s. */
export async function persistently<T>(call: () => Promise<T>): Promise<T> {
  const end = Date.now() + 60_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!/has ended|does not answer/.test(String(error)) || Date.now() > end) throw error;
    }
  }
}

/** Expects that the turn has ended as lost, with a single `turn.ended` in the log. Returns the event. */
export async function expectLost(
  client: Server,
  { home, sessionId }: { home: string; sessionId: string },
): Promise<string> {
  const ended: Answer = await persistently(async () => client.end(sessionId, 1));
  expect([ended.status, ended.result?.errorSubtype]).toEqual(["error", "lost"]);
  const log = await storedEvents(home, sessionId);
  const ends = log.filter(({ type }) => type === "turn.ended" || type === "result");
  expect(ends.map(({ type }) => type)).toEqual(["turn.ended"]);
  return ends[0]!.event;
}

/** Returns the log. Expects each event once, in order. */
export async function wholeLog(home: string, sessionId: string) {
  const log = await storedEvents(home, sessionId);
  expect(log.map(({ id }) => id)).toEqual(log.map((_, at) => at + 1));
  const uuids = log.flatMap(({ event, type }) => {
    if (type !== "message") return [];
    const { data } = JSON.parse(event) as { data: { message: { uuid?: string } } };
    return data.message.uuid ?? [];
  });
  expect(new Set(uuids).size).toBe(uuids.length);
  return log;
}

export const homeOf = ({ configFolder }: World) => join(configFolder, "..");

const Status = z.object({
  daemons: z.array(
    z.looseObject({
      pid: z.int(),
      socket: z.string(),
      lastDeath: z.looseObject({ why: z.string() }).optional(),
      shim: z
        .looseObject({ shims: z.array(z.looseObject({ pid: z.int(), processes: z.array(z.unknown()) })) })
        .optional(),
    }),
  ),
});

/** Returns the answering daemons, as `daemon status` reports them. */
export function daemonStatus(home: string): z.infer<typeof Status>["daemons"] {
  const main = join(import.meta.dirname, "../../../dist/cli/main.js");
  const env = { PATH: process.env["PATH"] ?? "", HOME: home };
  const { stdout } = spawnSync(process.execPath, [main, "daemon", "status", "--json"], { env, encoding: "utf8" });
  return Status.parse(JSON.parse(stdout)).daemons;
}

/** Returns the pids of all shims reported by `daemonStatus`. */
export function reportedShims(home: string): number[] {
  return daemonStatus(home).flatMap(({ shim }) => shim?.shims.map(({ pid }) => pid) ?? []);
}
