import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { repository } from "../kit/git-repository.ts";
import { commandOf } from "../kit/process-tree.ts";
import { constants } from "../kit/servers/constants.ts";
import { preloading } from "../kit/servers/preload.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { amount } from "../kit/runner/amount.ts";
import { useWorld, type World } from "../kit/world.ts";

/** Kills the server of a turn at each stage of its receipt and its verification. */

const KILLER = join(import.meta.dirname, "../kit/faults/kill-daemon.mjs");
const TIMEOUT = { timeout: 60_000 };

interface Case {
  readonly world: World;
  readonly cwd: string;
  readonly client: Server;
  readonly sessionId: string;
}

interface Stage {
  readonly name: string;
  /** Point of `kill-daemon.mjs`; without one, `during` kills the daemon. */
  readonly point?: string;
  readonly script?: readonly object[];
  readonly commands?: readonly string[];
  readonly allowedTools?: readonly string[];
  readonly during?: (the: Case) => Promise<void>;
  /** Content of the file `ran`, to which the commands write; with Claude Code alive, and without. */
  readonly ran: readonly [shim: string, noShim: string];
  readonly expected: readonly [shim: object, noShim: object];
  readonly receipt?: object;
}

const EDIT = { text: "I write.", tools: [{ name: "Bash", input: { command: "echo new > made.txt" } }] };
const DONE = { text: "Done." };
const [FIRST, SECOND] = ["echo 1 >> ran; echo $$ >> pids", "echo 2 >> ran"];
const GATE = "until [ -e go ]; do sleep 0.05; done";

const passed = (attempts = 1) => ({ isError: false, verification: { status: "passed", attempts, of: 2 } });
const LOST = { isError: true, errorSubtype: "lost" };
const WHOLE = { by: "tree", complete: true, files: { added: 1, names: ["made.txt"] } };
const LOST_BASELINE = "The state of the folders before the turn was lost.";
const NO_BASELINE = { by: "tools", complete: false };

const STAGES: readonly Stage[] = [
  {
    name: "before the baseline is stored",
    point: "before baseline",
    ran: ["1\n2\n", ""],
    expected: [passed(), LOST],
    receipt: NO_BASELINE,
  },
  {
    name: "while the request for the commands is open",
    point: "after request",
    // Claude Code may run the tool, but the commands need an answer.
    allowedTools: ["Bash(echo new > made.txt)"],
    during: allow,
    ran: ["1\n2\n", "1\n2\n"],
    expected: [passed(), passed()],
  },
  {
    name: "in command 1 of 2",
    commands: [`${FIRST}; ${GATE}`, SECOND],
    during: killInCommand,
    ran: ["1\n1\n2\n", "1\n1\n2\n"],
    expected: [passed(), passed()],
  },
  {
    name: "between commands",
    commands: [`${FIRST}; ${GATE}; [ -e killed ] || { touch killed; kill -9 $(cat daemon); }`, SECOND],
    during: async ({ cwd, world }) => {
      await made(join(cwd, "ran"));
      writeFileSync(join(cwd, "daemon"), String(world.daemons()[0]));
      writeFileSync(join(cwd, "go"), "");
    },
    ran: ["1\n1\n2\n", "1\n1\n2\n"],
    expected: [passed(), passed()],
  },
  {
    name: "while Claude Code repairs",
    script: [EDIT, DONE, { text: "Repaired.", gateBefore: "repair" }],
    commands: [`${FIRST}; [ $(wc -l < ran) -gt 1 ]`, SECOND],
    during: async ({ sessionId, world }) => {
      await world.model.waitForRequest(
        (request) => request.sessionId === sessionId && request.lastUserText.includes("exited with 1"),
      );
      killDaemon(world);
      world.model.release("repair");
    },
    ran: ["1\n1\n2\n", "1\n"],
    expected: [passed(2), { ...LOST, verification: { status: "failed", attempts: 1 } }],
  },
  {
    name: "after the verification, before the look",
    point: "after verification",
    ran: ["1\n2\n", "1\n2\n"],
    expected: [passed(), passed()],
  },
  {
    name: "before the receipt and the end of the turn",
    point: "before receipt",
    ran: ["1\n2\n", "1\n2\n"],
    expected: [passed(), passed()],
  },
];

async function made(file: string): Promise<void> {
  await vi.waitUntil(() => existsSync(file), { timeout: 20_000, interval: 20 });
}

function killDaemon(world: World): void {
  const [pid = 0] = world.daemons();
  process.kill(pid, "SIGKILL");
}

/** Kills the daemon in the first command. The next owner must have ended this command before it runs any. */
async function killInCommand({ client, cwd, sessionId, world }: Case): Promise<void> {
  await made(join(cwd, "pids"));
  const pid = Number(readFileSync(join(cwd, "pids"), "utf8"));
  killDaemon(world);
  void persistently(async () => client.call("claude_code_session", { action: "get", sessionId }));
  await vi.waitUntil(() => readFileSync(join(cwd, "ran"), "utf8") === "1\n1\n", { timeout: 20_000, interval: 20 });
  expect(commandOf(pid)).toBe("");
  writeFileSync(join(cwd, "go"), "");
}

/** Allows the commands at the owner after the killed one. */
async function allow({ client, sessionId }: Case): Promise<void> {
  const asked = await persistently(async () => client.news(sessionId));
  const [request] = asked.actions;
  expect(request).toMatchObject({ toolName: "Verification" });
  const answer = { action: "respond_permission", sessionId, requestId: request?.requestId, decision: "allow" };
  await persistently(async () => client.call("claude_code_check", answer));
}

/** Repeats `call` if the daemon died during the call, for up to 40 s. */
async function persistently<T>(call: () => Promise<T>): Promise<T> {
  const end = Date.now() + 40_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!String(error).includes("has ended") || Date.now() > end) throw error;
    }
  }
}

/** Starts a verified turn in a repository, at a daemon that dies at `point`. */
async function begin(world: World, stage: Stage, shim: boolean): Promise<Case> {
  const { allowedTools = ["Bash"], commands = [FIRST, SECOND], point, script = [EDIT, DONE] } = stage;
  const cwd = world.folder();
  repository(cwd, "text");
  writeFileSync(join(cwd, ".gitignore"), "ran\npids\ngo\ndaemon\nkilled\nmark\n");
  const killing = { KILL_MARK: join(cwd, "mark"), KILL_POINTS: point ?? "" };
  const client = await world.shared({
    ...(shim ? {} : { env: constants({ shim: false }) }),
    ...(point !== undefined && { node: [preloading(KILLER, killing)] }),
  });
  const start = { prompt: scriptTag([...script]), cwd, allowedTools, advanced: { verify: commands } };
  await client.call("claude_code", start).catch((error: unknown) => {
    if (!String(error).includes("has ended")) throw error;
  });
  const { sessions } = await persistently(async () => client.call("claude_code_session", { action: "list" }));
  return { world, cwd, client, sessionId: sessions[0]!.sessionId };
}

async function log(world: World, sessionId: string) {
  const events = await storedEvents(join(world.configFolder, ".."), sessionId);
  expect(events.map(({ id }) => id)).toEqual(events.map((_, at) => at + 1));
  return (type: string) =>
    events.filter((each) => each.type === type).map(({ event }) => JSON.parse(event) as { data: unknown });
}

/** Checks the end of a turn: it ended once, with one true receipt, and no prompt was run twice. */
async function expectOneEnd({ cwd, sessionId, world }: Case, answer: Answer, stage: Stage, at: 0 | 1) {
  expect(answer.result).toMatchObject({ ...stage.expected[at], receipt: stage.receipt ?? WHOLE });
  expect(existsSync(join(cwd, "ran")) ? readFileSync(join(cwd, "ran"), "utf8") : "").toBe(stage.ran[at]);
  const ofType = await log(world, sessionId);
  const ids = ["turn.started", "turn.receipt", "turn.ended"].map((type) => ofType(type).length);
  expect(ids).toEqual([1, 1, 1]);
  const isBaselineLost = JSON.stringify(ofType("turn.receipt")).includes(LOST_BASELINE);
  expect(isBaselineLost).toBe(stage.receipt !== undefined);
  const served = world.model.requests.flatMap((request) =>
    request.sessionId === sessionId && "entry" in request.served ? [request.served.entry] : [],
  );
  expect(new Set(served).size).toBe(served.length);
}

describe("a daemon killed in a turn that is verified", () => {
  const world = useWorld({ agent: "stand-in" });
  afterEach(async () => world.closeServers());

  /** Usually each stage once, with and without a living Claude Code in turn. */
  const fates = (index: number) => ([0, 1] as const).filter((at) => amount(at === index % 2 ? 1 : 0, 1) === 1);
  it.each(
    STAGES.flatMap((stage, index) =>
      fates(index).map((at) => [stage.name, at === 0 ? "lives on" : "dies too", stage, at] as const),
    ),
  )("%s, Claude Code %s: the turn ends once, with a true receipt", TIMEOUT, async (_, __, stage, at) => {
    const the = await begin(world, stage, at === 0);
    await stage.during?.(the);
    const answer = await persistently(async () => the.client.end(the.sessionId));
    await expectOneEnd(the, answer, stage, at);
    await the.client.close();
    await world.closeServers();
    await world.quiet(15_000);
    expect(world.daemons()).toEqual([]);
  });
});
