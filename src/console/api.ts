import { z } from "zod";
import { AppError, invalidArgument } from "../domain/error.ts";
import { PERMISSION_MODES } from "../domain/permission.ts";
import type { Caller, Principal, Scope } from "../domain/principal.ts";
import type { Profiles } from "../domain/profile.ts";
import { CONSOLE } from "../domain/approvals/answer-source.ts";
import { SessionStatus } from "../domain/session.ts";
import type { ActingCaller } from "../engine/actions/action.ts";
import { start } from "../engine/actions/begin.ts";
import { PAGE_DEFAULT, MAX_PAGE } from "../engine/actions/input.ts";
import { events as readEvents, get, list as listSessions } from "../engine/actions/reading.ts";
import type { Engine } from "../engine/api.ts";
import type { SessionBackend, SessionQuery } from "../engine/ports.ts";
import { createUsageReport } from "../usage/days.ts";
import { SubagentTasks } from "./subagent-tasks.ts";
import { ACTIONS, startSession } from "./actions.ts";
import { shownEvent } from "./shown-event.ts";
import { streamLive, type LiveQuery, type Send } from "./live.ts";
import { readNodes, readPlan } from "./plan.ts";
import { findRequest, readDecisions, readPending } from "./requests.ts";
import { buildDetail, buildRow } from "./rows.ts";
import type { Sources } from "./sources.ts";
import { Titles } from "./titles.ts";
import type { EventPage, LinkedRequest, Me, PendingRequest, RequestList, SessionDetail, SessionList } from "./wire.ts";
import type { Usage } from "./wire-usage.ts";

/**
 * Read and command API of the page, over the operations of the engine. Callers are authenticated; sessions of other principals
 * do not exist here. Refusals are thrown as `AppError`. Types of the answers: `wire.ts`.
 */

interface ConsoleOptions {
  readonly version: string;
  readonly approvers: Me["approvers"];
  /** Default folder for sessions of `principal`. Throws `AppError` if there is none. */
  readonly cwdOf: (principal: Principal) => string;
  readonly profilesOf: (principal: Principal) => Profiles;
  readonly allowsBypass: () => boolean;
  /** False with `--no-auth`. */
  readonly signsIn: boolean;
}

export interface ConsoleApi {
  routes: readonly Route[];
  /** Throws `AppError` if the query is refused. The returned function sends events until `signal` aborts. */
  /** Resolves to `closed`, which says why, if the request is not open. */
  findRequest(
    caller: Caller,
    which: Pick<PendingRequest, "requestId" | "sessionId">,
  ): Promise<LinkedRequest | { readonly closed: string }>;
  live(caller: Caller, query: URLSearchParams): (send: Send, signal: AbortSignal) => Promise<void>;
}

export interface Route {
  readonly method: "GET" | "POST";
  /** Path below `/console/api`, with parameters such as `:id`. */
  readonly path: string;
  readonly scope: Scope;
  /** Name of the action for the `audit` log; missing in routes without side effects, which read no body. */
  readonly action?: string;
  readonly handle: (request: ApiRequest) => Promise<object>;
}

export interface ApiRequest {
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Parsed JSON of any type; `undefined` without a body. */
  readonly body: unknown;
}

export interface RunningServer {
  readonly engine: Engine;
  readonly store: Pick<SessionBackend, "ledger" | "log" | "machines" | "rows">;
}

/** `running` throws `AppError` while the server starts. */
export function createConsoleApi(running: () => RunningServer, options: ConsoleOptions): ConsoleApi {
  let kept: Sources | undefined;
  const sources = ({ caller }: Pick<ApiRequest, "caller">): Sources => {
    const { engine, store } = running();
    kept ??= {
      engine,
      store,
      titles: new Titles(engine),
      agents: new SubagentTasks(store.log),
      usage: createUsageReport(store),
    };
    return { ...kept, engine: engine.forCaller(caller) };
  };
  const reading: Route[] = [
    {
      method: "GET",
      path: "/me",
      scope: "read",
      handle: async ({ caller }) => Promise.resolve(describeMe(caller, options)),
    },
    { method: "GET", path: "/sessions", scope: listSessions.scope, handle: async (ask) => list(sources(ask), ask) },
    { method: "GET", path: "/sessions/:id", scope: get.scope, handle: async (ask) => detail(sources(ask), ask) },
    {
      method: "GET",
      path: "/sessions/:id/events",
      scope: readEvents.scope,
      handle: async (ask) => events(sources(ask), ask),
    },
    {
      method: "GET",
      path: "/sessions/:id/events/:event",
      scope: readEvents.scope,
      handle: async (ask) => event(sources(ask), ask),
    },
    { method: "GET", path: "/requests", scope: "read", handle: async (ask) => requests(sources(ask), ask) },
    { method: "GET", path: "/usage", scope: "read", handle: async (ask) => usage(sources(ask), ask) },
    { method: "GET", path: "/plan", scope: "read", handle: async (ask) => readPlan(sources(ask), ask.caller) },
    { method: "GET", path: "/nodes", scope: "read", handle: async (ask) => readNodes(sources(ask), ask.caller) },
  ];
  const starting: Route = {
    method: "POST",
    path: "/sessions",
    scope: start.scope,
    action: start.name,
    handle: async (ask) => startSession(actingCaller(sources(ask), ask), ask.body, options.cwdOf),
  };
  return {
    routes: [...reading, starting, ...actionRoutes(sources)],
    findRequest: async (caller, which) =>
      linkedRequest(await findRequest(sources({ caller }), caller.principal, which).catch(undefinedIfRefused), options),
    live: (caller, query) => {
      const asked = { caller, query: readLiveQuery(query) };
      const from = sources({ caller });
      return async (send, signal) => streamLive(from, asked, send, signal);
    },
  };
}

function undefinedIfRefused(error: unknown): undefined {
  if (error instanceof AppError) return undefined;
  throw error;
}

function linkedRequest(
  found: Awaited<ReturnType<typeof findRequest>>,
  { approvers }: Pick<ConsoleOptions, "approvers">,
): LinkedRequest | { readonly closed: string } {
  if (!found) return { closed: "The request is no longer open." };
  if ("input" in found) return { request: found, approvers };
  const { behavior, by } = found;
  const words = Object.hasOwn(approvers, by) ? approvers[by]?.by : undefined;
  return {
    closed: `The request is no longer open: ${behavior === "allow" ? "allowed" : "denied"} ${words ?? `by ${by}`}.`,
  };
}

function actionRoutes(sources: (ask: ApiRequest) => Sources): Route[] {
  return ACTIONS.map(({ act, name, scope }) => {
    const handle: Route["handle"] = async (ask) =>
      act(actingCaller(sources(ask), ask), idOf(ask.params), ask.body ?? {});
    return { method: "POST", path: `/sessions/:id/${name.replaceAll("_", "-")}`, scope, action: name, handle };
  });
}

function actingCaller({ engine }: Pick<Sources, "engine">, { caller }: Pick<ApiRequest, "caller">): ActingCaller {
  return { engine, caller, by: CONSOLE };
}

function describeMe({ principal, scopes }: Caller, options: ConsoleOptions): Me {
  const { allowsBypass, approvers, cwdOf, profilesOf, signsIn, version } = options;
  const permissionModes = PERMISSION_MODES.filter((mode) => mode !== "bypassPermissions" || allowsBypass());
  const cwd = tryFolder(() => cwdOf(principal));
  const about = { principal, scopes, version, signsIn, approvers };
  const profiles = Object.entries(profilesOf(principal)).map(([name, { description }]) => {
    return { name, ...(description !== undefined && { description }) };
  });
  return { ...about, ...(cwd !== undefined && { cwd }), profiles, permissionModes };
}

function tryFolder(folder: () => string): string | undefined {
  try {
    return folder();
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

const Statuses = SessionStatus.array();
const SessionFilters = z.object(listSessions.fields);

/** Drops an empty parameter `name`, so that an empty filter matches every session. */
function readFilter(query: URLSearchParams, name: string): Record<string, string> {
  const text = query.get(name) ?? "";
  return text === "" ? {} : { [name]: text };
}

async function list(sources: Sources, { caller, query }: ApiRequest): Promise<SessionList> {
  const limit = readNumber(query, "limit", { least: 1, most: MAX_PAGE, fallback: PAGE_DEFAULT });
  const statuses = Statuses.safeParse(query.getAll("status"));
  if (!statuses.success) throw invalidArgument("status", `must be one of ${SessionStatus.options.join(", ")}.`);
  const sought = SessionFilters.safeParse({ ...readFilter(query, "text"), ...readFilter(query, "cwd") });
  if (!sought.success) throw invalidArgument(String(sought.error.issues[0]?.path[0]), "is too long.");
  const before = parseCursor(query.get("before"));
  const wanted: Omit<SessionQuery, "principal"> = {
    ...(statuses.data.length > 0 && { statuses: statuses.data }),
    ...sought.data,
    ...(before && { before }),
    limit: limit + 1,
  };
  const found = await listSessions.run(actingCaller(sources, { caller }), wanted);
  const page = found.slice(0, limit);
  const sessions = await Promise.all(page.map(async (record) => buildRow(sources, record)));
  const last = page.at(-1);
  return { sessions, ...(found.length > limit && last && { next: `${String(last.updatedAt)}.${last.id}` }) };
}

/** Parses a keyset cursor `{updatedAt}.{id}`, as returned in `SessionList.next`. */
function parseCursor(text: string | null): SessionQuery["before"] | undefined {
  if (text === null) return undefined;
  const [, updatedAt, id] = /^(\d{1,15})\.(.{1,200})$/.exec(text) ?? [];
  if (updatedAt === undefined || id === undefined) throw invalidArgument("before", "must be `next` of a page.");
  return { updatedAt: Number(updatedAt), id };
}

async function detail(sources: Sources, { caller, params }: ApiRequest): Promise<SessionDetail> {
  return buildDetail(sources, await get.run(actingCaller(sources, { caller }), { sessionId: idOf(params) }));
}

const [PAGE, MAX_LOG_PAGE] = [200, 500];
const ID = { least: 1, most: Number.MAX_SAFE_INTEGER };

async function events(sources: Sources, { caller, params, query }: ApiRequest): Promise<EventPage> {
  const acting = actingCaller(sources, { caller });
  const sessionId = idOf(params);
  const { state } = await get.run(acting, { sessionId });
  const { lastEventId } = state;
  const limit = readNumber(query, "limit", { least: 1, most: MAX_LOG_PAGE, fallback: PAGE });
  const forward = query.has("from");
  const end = Math.min(readNumber(query, "before", { ...ID, fallback: lastEventId + 1 }), lastEventId + 1);
  const from = forward ? readNumber(query, "from", { ...ID, fallback: 1 }) : Math.max(1, end - limit);
  const page = await readEvents.run(acting, { sessionId, from, limit: forward ? limit : Math.max(0, end - from) });
  return { events: page.map(shownEvent), lastEventId };
}

async function event(sources: Sources, { caller, params }: ApiRequest): Promise<object> {
  const wanted = /^\d{1,15}$/.test(params["event"] ?? "") ? Number(params["event"]) : 0;
  const part = { sessionId: idOf(params), from: wanted, limit: 1 };
  const [found] = wanted > 0 ? await readEvents.run(actingCaller(sources, { caller }), part) : [];
  if (found?.id !== wanted) throw invalidArgument("event", "there is no event with this id.");
  return found;
}

async function requests(sources: Sources, { caller }: ApiRequest): Promise<RequestList> {
  const [open, decided] = await Promise.all([
    readPending(sources, caller.principal),
    readDecisions(sources, caller.principal),
  ]);
  return { open, decided };
}

async function usage({ usage: counted }: Sources, { caller, query }: ApiRequest): Promise<Usage> {
  const zone = query.get("zone") ?? undefined;
  const since = query.has("since") ? readNumber(query, "since", { ...ID, fallback: 1 }) : undefined;
  return counted(caller.principal, { since, zone });
}

function readLiveQuery(query: URLSearchParams): LiveQuery {
  return { session: query.get("session") ?? undefined, from: readNumber(query, "from", { ...ID, fallback: 1 }) };
}

function idOf(params: ApiRequest["params"]): string {
  return params["id"] ?? "";
}

function readNumber(
  query: URLSearchParams,
  name: string,
  { fallback, least, most }: { least: number; most: number; fallback: number },
): number {
  const text = query.get(name);
  if (text === null) return fallback;
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw invalidArgument(name, `must be a whole number from ${String(least)} to ${String(most)}.`);
}
