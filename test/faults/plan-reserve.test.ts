import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { amount } from "../kit/runner/amount.ts";
import { constants } from "../kit/servers/constants.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { type Commit, recordCommits } from "../kit/store/commit-order.ts";
import { useWorld } from "../kit/world.ts";

/**
 * The operator's reserve under sessions of one account on two daemons of one store: nothing starts above the line of the 5-hour
 * window, everything stops above the line of the weekly window, in the order in which the store has committed.
 */

const world = useWorld({ agent: "stand-in", plan: true });

interface Session {
  readonly id: string;
  readonly server: Server;
}

const MARGIN_MS = 200;
const STRANGERS = { CLAUDE_CODE_OAUTH_TOKEN: "sk-ant-oat01-of-another-account-0123456789" };
const BY_KEY = { ANTHROPIC_API_KEY: "sk-ant-api03-of-these-tests-0123456789" };

const LIMIT_FIELDS = { isError: true, errorSubtype: "plan_reserve", category: "limit" };
const iso = expect.stringMatching(/^20.*Z$/) as string;
const call = { name: "Bash", input: { command: "echo looked" } };
const say = (word: string) => `${word}. ${scriptTag([{ text: `Done ${word}.` }])}`;
const work = (length: number): Script => Array.from({ length }, () => ({ tools: [call], delayMs: 30 }));

let servers: readonly Server[] = [];
let strangers: readonly Server[] = [];
let commits: (after?: number) => Promise<Commit[]>;

beforeAll(async () => {
  const settings = world.settings({ planReserve: { fiveHour: 15, sevenDay: 20 } });
  const env = { ...settings, ...constants({ limitMarginMs: MARGIN_MS }) };
  const daemons = await Promise.all(["left", "right"].map(async (name) => world.daemon({ name, env })));
  commits = await recordCommits(join(world.configFolder, ".."));
  servers = await Promise.all(daemons.map(async (daemon) => daemon.client()));
  strangers = await Promise.all([STRANGERS, BY_KEY].map(async (own, n) => daemons[n]!.client({ env: own })));
});

/** Starts `count` sessions, in turn on each of the two daemons. */
async function begin(count: number, prompt: (n: number) => string, advanced: object = {}): Promise<Session[]> {
  return Promise.all(Array.from({ length: count }, async (_, n) => open(servers[n % 2]!, prompt(n), advanced)));
}

async function open(server: Server, prompt: string, advanced: object = {}): Promise<Session> {
  const args = { prompt, cwd: world.folder(), allowedTools: ["Bash"], advanced };
  const { sessionId } = await server.call("claude_code", args);
  return { id: sessionId, server };
}

const ended = async (sessions: readonly Session[]): Promise<Answer[]> =>
  Promise.all(sessions.map(async ({ id, server }) => server.end(id)));

const get = async ({ id, server }: Session) =>
  (await server.call("claude_code_session", { action: "get", sessionId: id })).sessions[0];

const replyTo = async ({ id, server }: Session, prompt: string, more: object = {}) =>
  server.call("claude_code_reply", { sessionId: id, prompt, ...more });

/** Resolves with the number of the commit that has stored `usedPercent` of `window`. */
async function stored(window: string, usedPercent: number, after = 0): Promise<number> {
  const find = async () =>
    (await commits(after)).find(({ content, type }) => {
      if (type !== "ledger") return false;
      const { windows } = JSON.parse(content) as { windows: Record<string, { usedPercent?: number }> };
      return windows[window]?.usedPercent === usedPercent;
    });
  await expect.poll(find, { timeout: 20_000, interval: 10 }).toBeDefined();
  return (await find())!.n;
}

const requestsOf = (word: string) =>
  world.model.requests.filter(({ told }) => told.includes(`${word}. <model-script>`));

/** Returns the commits after the line that begin a turn which no limit holds back. */
function startedAfter(line: number, all: readonly Commit[]): Commit[] {
  return all.filter(({ n, of, type }) => {
    if (type !== "turn.started" || n < line) return false;
    const next = all.find((each) => each.of === of && each.n > n);
    return next?.type !== "notice" || !next.content.includes('"waiting"');
  });
}

/** Gives prompts without pause until a reserve keeps one from starting. Returns the number of prompts given before. */
async function promptUntilHeld(session: Session): Promise<number> {
  const { id, server } = session;
  for (let count = 0; ; count += 1) {
    const answer = await replyTo(session, say("quick")).catch((error: unknown) => String(error));
    if (typeof answer === "string") {
      if (/SESSION_BUSY.*5-hour window \(planReserve\), which resets at 20/.test(answer)) return count;
      throw new Error(answer);
    }
    const { status, waiting } = answer["waiting"] ? answer : await server.news(id, answer.nextCursor);
    if (waiting) {
      await server.call("claude_code_session", { action: "interrupt", sessionId: id });
      return count;
    }
    if (status === "running") await server.end(id);
  }
}

describe("the reserve of the 5-hour window, with sessions of one account on two daemons", () => {
  it("keeps every turn from starting whose start is stored after the report, however close", async () => {
    const rounds = amount(3, 60);
    const plan = (used: number) => ({ fiveHour: { used, resetsInS: 3_600 } });
    const script = Array.from({ length: rounds }, (_, n): Script => [
      { tools: [call], gateBefore: `up-${String(n)}`, plan: plan(0.86) },
      { tools: [call], gateBefore: `down-${String(n)}`, plan: plan(0.1) },
    ]).flat();
    const reporter = await open(servers[0]!, scriptTag([...script, { text: "Done." }]));
    const reports = await begin(4, () => say("first"), { onLimit: "report" });
    const waits = await begin(4, () => say("first"), { onLimit: "wait" });
    const all = [...reports, ...waits];
    await ended(all);
    let last = 0;
    for (let n = 0; n < rounds; n += 1) {
      const before = world.model.requests.length;
      const done = Promise.all(all.map(promptUntilHeld));
      await expect.poll(() => world.model.requests.length, { interval: 5 }).toBeGreaterThan(before + all.length);
      world.model.release(`up-${String(n)}`);
      const counts = await done;
      expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThan(0);
      const line = await stored("five_hour", 86, last);
      const answers = await ended(all);
      expect(answers.map(({ status }) => status)).toEqual(all.map(() => "idle"));
      expect(startedAfter(line, await commits(last))).toEqual([]);
      world.model.release(`down-${String(n)}`);
      last = await stored("five_hour", 10, line);
    }
    expect(await ended([reporter])).toMatchObject([{ status: "idle", result: { result: "Done." } }]);
  });

  it("lets running turns end, holds and refuses prompts, and starts each that waits once after the reset", async () => {
    const plan = { fiveHour: { used: 0.86, resetsInS: 15 } };
    const script = (isReporter: boolean): Script => [
      ...work(2),
      { tools: [call], gateBefore: "five", ...(isReporter && { plan }) },
      { tools: [call], gateBefore: "on" },
      { text: "Ended as it was." },
    ];
    const reports = await begin(4, (n) => scriptTag(script(n === 0)), { onLimit: "report" });
    const waits = await begin(3, () => scriptTag(script(false)), { onLimit: "wait" });
    const last = await begin(1, () => scriptTag(script(false)), { onLimit: "wait", priority: "background" });
    const all = [...reports, ...waits, ...last];
    await Promise.all(
      [reports[0]!, waits[0]!].map(async (each) => replyTo(each, say("queued"), { whenBusy: "queue" })),
    );
    const before = (await commits()).at(-1)?.n;
    world.model.release("five");
    const line = await stored("five_hour", 86, before);
    const outside = await Promise.all(strangers.map(async (server) => open(server, say("outside"))));
    world.model.release("on");

    const held = { waiting: { kind: "plan_reserve", window: "five_hour", until: iso } };
    const ends = await ended([...reports, ...waits.slice(1), ...last]);
    for (const end of ends) expect(end).toMatchObject({ status: "idle", result: { result: "Ended as it was." } });
    expect(await get(reports[0]!)).toMatchObject({ status: "idle", ...held, held: 1 });
    await expect.poll(async () => get(waits[0]!)).toMatchObject({ status: "running", ...held });
    for (const { id: sessionId, server } of reports) {
      const refusal = await server.refusal("claude_code_reply", { sessionId, prompt: say("refused") });
      expect(refusal).toMatchObject({ code: "SESSION_BUSY", text: expect.stringMatching(/planReserve.*resets at 20/) });
    }
    const early = await Promise.all(
      [...last, ...waits.slice(1)].map(async (each, n) => replyTo(each, say(`early-${n}`))),
    );
    for (const answer of early) expect(answer).toMatchObject({ status: "running" });
    const untils: number[] = [];
    for (const each of [...waits, ...last]) {
      const { status, waiting } = { ...(await get(each)) };
      expect({ status, waiting }).toMatchObject({ status: "running", ...held });
      untils.push(Date.parse((waiting as { until: string }).until));
    }
    // The background session goes on after all others.
    expect(untils.at(-1)! - Math.max(...untils.slice(0, -1))).toBeGreaterThanOrEqual(2 * MARGIN_MS);
    const isHeldWhole = startedAfter(line, await commits()).filter(({ of }) => all.some(({ id }) => id === of));
    expect(isHeldWhole).toEqual([]);
    expect(await ended(outside)).toMatchObject([{ status: "idle" }, { status: "idle" }]);

    const texts = (await ended([...last, ...waits])).map(({ result }) => result?.result);
    expect(texts).toEqual(["Done early-0.", "Done queued.", "Done early-1.", "Done early-2."]);
    for (const n of [0, 1, 2]) expect(requestsOf(`early-${n}`)).toHaveLength(1);
    for (const each of reports) expect(await get(each)).not.toHaveProperty("waiting");
    await reports[0]!.server.call("claude_code_session", { action: "release_queue", sessionId: reports[0]!.id });
    await Promise.all(reports.slice(1).map(async (each) => replyTo(each, say("later"))));
    const after = (await ended(reports)).map(({ result }) => result?.result);
    expect(after).toEqual(["Done queued.", "Done later.", "Done later.", "Done later."]);
    expect(requestsOf("queued")).toHaveLength(2);
    expect(requestsOf("refused")).toEqual([]);
  });
});

describe("the reserve of the weekly window, with sessions of one account on two daemons", () => {
  it("interrupts every turn at its next tool call, holds its queue, and leaves other accounts alone", async () => {
    const plan = { sevenDay: { used: 0.81, resetsInS: 15 } };
    // The last two make no tool call while an interrupt is on its way.
    const script = (n: number): Script => [
      ...work(2),
      ...(n === 3 ? [{ tools: [call], gateBefore: "seven", plan } satisfies Script[number]] : []),
      ...(n < 6
        ? work(500)
        : [
            { tools: [call], gateBefore: "next" },
            { text: "Too late.", gateBefore: "never" },
          ]),
    ];
    const reports = await begin(4, (n) => scriptTag(script(n)), { onLimit: "report" });
    const waits = await begin(4, (n) => scriptTag(script(4 + n)), { onLimit: "wait" });
    const all = [...reports, ...waits];
    const outside = await Promise.all(
      strangers.map(async (server) =>
        open(server, scriptTag([...work(2), { tools: [call], gateBefore: "out" }, { text: "Done." }])),
      ),
    );
    await Promise.all(all.map(async (each) => replyTo(each, say("held"), { whenBusy: "queue" })));
    const requests = (id: string) => world.model.requests.filter(({ sessionId }) => sessionId === id).length;
    await expect.poll(() => Math.min(...[...all, ...outside].map(({ id }) => requests(id)))).toBeGreaterThan(2);
    const before = (await commits()).at(-1)?.n;
    world.model.release("seven");
    const line = await stored("seven_day", 81, before);
    world.model.release("next");

    const waiting = { kind: "plan_reserve", window: "seven_day", until: iso };
    for (const end of await ended(all)) {
      expect(end).toMatchObject({ status: "idle", waiting, result: LIMIT_FIELDS });
    }
    for (const each of all) expect(await get(each)).toMatchObject({ status: "idle", waiting, held: 1 });
    const later = await commits(line);
    for (const { id } of all) {
      const own = later.filter(({ of }) => of === id);
      const stop = own.findIndex(({ content, type }) => type === "stopping" && content === "plan_reserve");
      expect(stop).not.toBe(-1);
      // SQLite runs the trigger of the decision before those of the events of its transaction.
      expect(own.slice(0, stop).filter(isCall)).toEqual([]);
    }
    for (const { id } of waits.slice(2)) expect(later.filter(({ of }) => of === id).filter(isCall)).toHaveLength(1);
    for (const each of outside) expect(await get(each)).toMatchObject({ status: "running" });
    world.model.release("out");
    for (const end of await ended(outside)) expect(end).toMatchObject({ status: "idle", result: { result: "Done." } });

    const { id: sessionId, server } = reports[0]!;
    const refusal = await server.refusal("claude_code_reply", { sessionId, prompt: say("too-early") });
    expect(refusal).toMatchObject({
      code: "SESSION_BUSY",
      text: expect.stringContaining("weekly window (planReserve)"),
    });
    await Promise.all(waits.map(async (each) => replyTo(each, say("week"))));
    for (const each of waits) expect(await get(each)).toMatchObject({ status: "running", waiting });
    const texts = (await ended(waits)).map(({ result }) => result?.result);
    expect(texts).toEqual(waits.map(() => "Done week."));
    await Promise.all(reports.map(async (each) => replyTo(each, say("week"))));
    const after = (await ended(reports)).map(({ result }) => result?.result);
    expect(after).toEqual(reports.map(() => "Done week."));
    expect(requestsOf("week")).toHaveLength(8);
    expect(requestsOf("held")).toEqual([]);
  });
});

describe("the reserve of the weekly window, with the real Claude Code", () => {
  const real = useWorld({ plan: true });

  it("interrupts the session that reports, and another that has reported nothing, at the next tool call of each", async () => {
    const server = await real.server({ env: real.settings({ planReserve: { sevenDay: 20 } }) });
    const plan = { sevenDay: { used: 0.81, resetsInS: 3_600 } };
    const begun = async (script: Script) => {
      const prompt = scriptTag([...script, { text: "Too late.", gateBefore: "never" }]);
      return (await server.call("claude_code", { prompt, cwd: real.folder(), allowedTools: ["Bash"] })).sessionId;
    };
    const reporter = await begun([{ tools: [call], gateBefore: "report", plan }, { tools: [call] }]);
    const other = await begun([{ tools: [call] }, { tools: [call], gateBefore: "next" }]);
    const requests = (id: string) => real.model.requests.filter(({ sessionId }) => sessionId === id).length;
    await expect.poll(() => [requests(reporter), requests(other)]).toEqual([1, 2]);
    real.model.release("report");
    const waiting = { kind: "plan_reserve", window: "seven_day" };
    expect(await server.end(reporter)).toMatchObject({ status: "idle", waiting, result: LIMIT_FIELDS });
    real.model.release("next");
    expect(await server.end(other)).toMatchObject({ status: "idle", waiting, result: LIMIT_FIELDS });
  });
});

function isCall({ content, type }: Commit): boolean {
  return type === "message" && content.includes('"type":"assistant"') && content.includes('"type":"tool_use"');
}
