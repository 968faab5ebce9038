import { homeIn } from "../app/terms.ts";
import { rulesOf } from "../config/approvals/settings.ts";
import { ConfigError } from "../config/error.ts";
import { serverSettings } from "../config/server-settings.ts";
import { RULE_BEHAVIORS, type Rule, type RuleBehavior } from "../domain/approvals/rule.ts";
import type { EventType, StoredEvent } from "../domain/event.ts";
import { isChanged, rehearse, type After, type Before, type Replayed } from "../engine/policy/rehearsal.ts";
import { escapeControlChars } from "../security/control-chars.ts";
import { pointInTime, readArguments } from "./sessions/arguments.ts";
import { STDOUT } from "./sessions/export.ts";
import { table } from "./sessions/stats.ts";
import {
  allSessions,
  flagsOfServe,
  withFaultLines,
  withStoreIfAny,
  type SessionRecord,
  type Store,
} from "./sessions/store.ts";
import { callSubject, count, isoTime, oneLine } from "./sessions/text-format.ts";

/** `claude-agents-mcp rules try`: replays the store against other rules. Resolves to the exit code. */
export async function rules(argv: string[]): Promise<number> {
  const [verb, ...rest] = argv;
  const advice = `"claude-agents-mcp help rules" says more.`;
  if (verb === undefined || verb.startsWith("-")) throw new ConfigError(`rules needs a verb: rules try. ${advice}`);
  if (verb !== "try") throw new ConfigError(`Unknown verb "${oneLine(verb, MAX_TEXT)}". rules takes try. ${advice}`);
  return withFaultLines(async () => tryRules(rest));
}

const MAX_TEXT = 200;

const FLAGS = {
  "allow-rules": { type: "string" },
  "ask-rules": { type: "string" },
  "deny-rules": { type: "string" },
  since: { type: "string" },
  json: { type: "boolean" },
} as const;

type RulesByBehavior = Readonly<Record<RuleBehavior, readonly Rule[]>>;

/** Rules to try, and where to print. */
interface Trial {
  readonly rules: RulesByBehavior;
  readonly since: number | undefined;
  readonly isJson: boolean;
}

async function tryRules(argv: string[]): Promise<number> {
  const { values } = readArguments("rules try", argv, { options: FLAGS });
  const { json: isJson = false, since: sinceText, ...settings } = values;
  const since = sinceText === undefined ? undefined : pointInTime("since", sinceText, Date.now());
  const { config } = serverSettings({ argv: flagsOfServe(settings), env: process.env });
  const trial = { rules: rulesOf(config), since, isJson };
  const tally = new Tally();
  const head = isJson ? jsonHead(trial) : "";
  const isThere = await withStoreIfAny(
    values,
    async (store) => {
      await STDOUT.write(head);
      await replayAll(store, trial, tally);
      return true;
    },
    () => false,
  );
  if (!isThere) await STDOUT.write(head);
  await STDOUT.write(isJson ? jsonTail(tally) : inWords(trial, tally));
  return 0;
}

async function replayAll(store: Store, { isJson, rules: tried, since = 0 }: Trial, tally: Tally): Promise<void> {
  const progress = new Progress();
  const home = homeIn(process.env);
  for (const principal of await store.maintenance.principals()) {
    for await (const record of allSessions(store, { principal, since })) {
      tally.session(record);
      if (record.unreadable) continue;
      const { id, policy, spec } = record;
      const session = { spec, allowRules: policy?.rules.allow, since };
      for await (const replayed of rehearse(readLog(store, record, progress), session, { ...tried, home })) {
        const isFirst = tally.changed === 0;
        if (!tally.add(replayed)) continue;
        const json = () => (isFirst ? "" : ",") + jsonText(changeOf(id, replayed));
        await STDOUT.write(isJson ? json() : changeLine(id, replayed));
      }
    }
  }
}

/** Types that tell of requests and tool calls. */
const TYPES: readonly EventType[] = [
  "message",
  "notice",
  "permission.asked",
  "permission.answered",
  "question.asked",
  "question.answered",
  "process.exited",
  "verification.started",
];

/** Number of events held at a time, whatever the length of the log. */
const PAGE = 32;

/** Yields the events of `TYPES` up to the present end of the log. */
async function* readLog(store: Store, { id, state }: SessionRecord, progress: Progress): AsyncGenerator<StoredEvent> {
  for (let next = 1; next <= state.lastEventId;) {
    const page = await store.log.read(id, next, PAGE, TYPES);
    progress.onEvents(page.length);
    yield* page.filter((event) => event.id <= state.lastEventId);
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    next = last.id + 1;
  }
}

/** Time between two lines about the progress, ms. */
const PROGRESS_MS = 2000;

class Progress {
  #events = 0;
  #last = performance.now();

  onEvents(number: number): void {
    this.#events += number;
    const now = performance.now();
    if (now - this.#last < PROGRESS_MS) return;
    this.#last = now;
    process.stderr.write(`Replayed ${this.#events.toLocaleString("en-US")} events ...\n`);
  }
}

type Counts = Partial<Record<Before["route"] | After["route"], number>>;

/** Counts decisions before and after, requests and calls apart. */
class Tally {
  readonly request = { before: {} as Counts, after: {} as Counts };
  readonly call = { before: {} as Counts, after: {} as Counts };
  sessions = 0;
  unreadable = 0;
  changed = 0;
  /** Number of requests that a remembered answer settled. */
  remembered = 0;

  session({ unreadable }: SessionRecord): void {
    this.sessions += 1;
    if (unreadable) this.unreadable += 1;
  }

  /** Returns true for a decision that changes. */
  add(replayed: Replayed): boolean {
    const { after, before, kind } = replayed;
    const counts = this[kind];
    counts.before[before.route] = (counts.before[before.route] ?? 0) + 1;
    counts.after[after.route] = (counts.after[after.route] ?? 0) + 1;
    if (before.by === "remembered") this.remembered += 1;
    if (!isChanged(replayed)) return false;
    this.changed += 1;
    return true;
  }
}

function jsonText(value: unknown): string {
  return escapeControlChars(JSON.stringify(value));
}

/** Opens the object up to the list of changes, which is written as they are found. */
function jsonHead({ rules: tried, since }: Trial): string {
  const texts = Object.fromEntries(RULE_BEHAVIORS.map((behavior) => [behavior, tried[behavior].map(textOf)]));
  const head = jsonText({ ...(since !== undefined && { since: isoTime(since) }), rules: texts });
  return `${head.slice(0, -1)},"changes":[`;
}

function jsonTail({ call, changed, remembered, request, sessions, unreadable }: Tally): string {
  const { before, after } = call;
  const calls = {
    before: { unasked: before.unasked ?? 0, denied: before.denied ?? 0 },
    after: { unasked: after.unasked ?? 0, asked: after.asked ?? 0, denied: after.denied ?? 0 },
    unjudged: after.unjudged ?? 0,
  };
  const requests = {
    before: routesOf(request.before),
    after: routesOf(request.after),
    unjudged: request.after.unjudged ?? 0,
    remembered,
  };
  return `],${jsonText({ changed, requests, calls, sessions, unreadable }).slice(1)}\n`;
}

function routesOf({ allowed = 0, asked = 0, denied = 0 }: Counts) {
  return { allowed, asked, denied };
}

function changeOf(sessionId: string, { after, at, before, eventId, input, kind, toolName }: Replayed) {
  return { sessionId, eventId, at: isoTime(at), kind, toolName, input: callSubject(input), before, after };
}

function changeLine(sessionId: string, { after, at, before, input, toolName }: Replayed): string {
  const use = oneLine(`${toolName} ${callSubject(input)}`, MAX_TEXT);
  return `${isoTime(at)}  ${sessionId.slice(0, 8)}  ${use}: ${beforeText(before)} -> ${afterText(after)}\n`;
}

function beforeText({ answer, by, route, rule }: Before): string {
  if (route === "unasked") return "not asked";
  if (route === "asked" && answer === undefined) return "asked, still open";
  const verdict = route === "asked" ? `asked, ${answer === "allow" ? "allowed" : "denied"}` : route;
  if (by === "remembered") return `${verdict} by a remembered answer`;
  if (by === "claude") return `${verdict} by Claude Code`;
  // An asked request that a rule has denied had no approver.
  const who = route === "asked" && by === "rule" ? "want of an approver" : ruleText(rule ?? by);
  return `${verdict} by ${who}`;
}

function afterText({ route, rule, unclear }: After): string {
  if (rule === undefined) return route === "asked" ? "asked, no rule" : route;
  const why = unclear === undefined ? "" : `, which it cannot be checked against (${oneLine(unclear, MAX_TEXT)})`;
  return `${route} by ${ruleText(rule)}${why}`;
}

function ruleText(rule: string): string {
  return oneLine(rule, MAX_TEXT);
}

function textOf({ text }: Rule): string {
  return text;
}

function inWords({ rules: tried }: Trial, tally: Tally): string {
  const { call, changed, remembered, request, sessions, unreadable } = tally;
  const line = (name: string, route: keyof Counts, { after, before }: Tally["call"]) => {
    const [was, is] = [before[route] ?? 0, after[route] ?? 0];
    return [name, route === "unjudged" ? "" : String(was), String(is)];
  };
  const counts = table(
    ["", "BEFORE", "AFTER"],
    [
      line("requests allowed", "allowed", request),
      line("requests asked", "asked", request),
      line("requests denied", "denied", request),
      line("requests that cannot be judged", "unjudged", request),
      line("calls not asked", "unasked", call),
      line("calls asked", "asked", call),
      line("calls denied", "denied", call),
      line("calls that cannot be judged", "unjudged", call),
    ],
    1,
  );
  const notes = [
    ...RULE_BEHAVIORS.map((behavior) => `${behavior}: ${tried[behavior].map(textOf).join(", ") || "no rule"}`),
    `${count(changed, "decision")} of ${count(sessions, "session")} would change`,
    ...(remembered > 0 ? [`asked includes ${count(remembered, "request")} settled by remembered answers`] : []),
    ...(unreadable > 0 ? [`${count(unreadable, "session")} cannot be read`] : []),
  ];
  const gap = changed > 0 ? "\n" : "";
  return `${gap}${counts}\n${notes.map((note) => `${note}\n`).join("")}`;
}
