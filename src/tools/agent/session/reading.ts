import { z } from "zod";
import { invalidArgument, AppError } from "../../../domain/error.ts";
import type { JsonObject } from "../../../domain/json.ts";
import { SessionStatus, statusOf } from "../../../domain/session.ts";
import { PAGE_DEFAULT, MAX_PAGE } from "../../../engine/actions/input.ts";
import { diff as readDiff, get as getSession, list as listSessions } from "../../../engine/actions/reading.ts";
import type { SessionQuery, SessionRecord } from "../../../engine/ports.ts";
import { jsonBytes, fit } from "../../../view/size.ts";
import { actingCaller } from "../../scope.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { offerAs, offer } from "./action.ts";
import { ANSWER_BYTES, listedView, namesOf, publicView, sensitiveView, rememberedOf, SessionNames } from "./view.ts";

/** Hides what a session is about, which may be private: folders, prompts and options are told only where the operator allows it. */

const IncludeSensitive = z.boolean().exactOptional().describe("Default: false");

/** Throws PERMISSION_DENIED, never leaves out in silence: a caller would take what is missing for what is not there. */
function checkSensitive({ allows }: ToolDeps, wanted: readonly string[]): void {
  if (allows.sensitiveDetails || wanted.length === 0) return;
  const advice =
    "The operator allows it with --allow-sensitive-session-details or CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS=1.";
  const without = `Leave ${wanted.join(", ")} out.`;
  throw new AppError(
    "PERMISSION_DENIED",
    `Folders, prompts and options of sessions are hidden on this server (${wanted.join(", ")}). ${without} ${advice}`,
  );
}

/** What stands around the session in the answer. */
const AROUND_ONE = 20;

const GET_FIELDS = { ...getSession.fields, includeSensitive: IncludeSensitive };

export const get = offerAs(getSession, GET_FIELDS, async ({ includeSensitive = false, ...which }, call, deps) => {
  checkSensitive(deps, includeSensitive ? ["includeSensitive"] : []);
  const record = await getSession.run(actingCaller(call, deps), which);
  if (!includeSensitive) return { sessions: [{ ...publicView(record), ...rememberedOf(record) }] };
  const remembered = rememberedOf(record);
  const room = ANSWER_BYTES - AROUND_ONE - jsonBytes(remembered);
  return { sessions: [{ ...(await sensitiveView(record, room, call, deps)), ...remembered }] };
});

export const diff = offer(readDiff, {
  present: ({ files, git }, { sessionId }, _, { mask }) => {
    const { cut, value } = fit({ files, ...(git && { git: mask(git) }) }, ANSWER_BYTES - 100, ["git"]);
    return { sessionId, ...value, ...(cut && { truncated: true }) };
  },
});

/** Of a session in the sensitive tier, bytes: `get` tells it whole. */
const SESSION_BYTES = 3_000;
/** The token and what stands around the sessions. */
const AROUND = 300;

const Status = z.union([SessionStatus, z.array(SessionStatus).min(1).max(SessionStatus.options.length)]);

const LIST_FIELDS = {
  status: Status.exactOptional().describe("Default: any"),
  cwd: listSessions.fields.cwd.describe("Default: any"),
  text: listSessions.fields.text.describe("in title, cwd or prompt. Default: any"),
  since: z
    .union([z.string(), z.int().min(0)])
    .exactOptional()
    .describe("ISO time. Default: any"),
  limit: z
    .int()
    .min(1)
    .max(MAX_PAGE)
    .exactOptional()
    .describe(`Default: ${String(PAGE_DEFAULT)}`),
  pageToken: z.string().min(1).max(1_000).exactOptional().describe("nextPageToken. Default: none"),
  includeSensitive: IncludeSensitive,
};
type Arguments = z.output<z.ZodObject<typeof LIST_FIELDS>>;

/** What is offered of them: the unions say little that the docs and an error do not say better. */
export const ADVERTISED_FILTERS: Readonly<Record<string, JsonObject>> = {
  status: { type: "array", items: { type: "string" }, description: "Default: any" },
  since: { type: "string", description: "ISO time. Default: any" },
  limit: { type: "integer", description: `Default: ${String(PAGE_DEFAULT)}` },
};

export const list = offerAs(listSessions, LIST_FIELDS, async (args, call, deps) => {
  const { cwd, includeSensitive = false, limit = PAGE_DEFAULT, text } = args;
  const sensitive = { cwd: cwd !== undefined, text: text !== undefined, includeSensitive };
  checkSensitive(
    deps,
    Object.entries(sensitive).flatMap(([name, wanted]) => (wanted ? [name] : [])),
  );
  const query = queryOf(args);
  const found = await listSessions.run(actingCaller(call, deps), { ...query, limit: limit + 1 });
  // One whose owner had died is recorded as lost while it is listed.
  const matching = found.filter(({ state }) => query.statuses?.includes(statusOf(state)) ?? true);
  const page = matching.slice(0, limit);
  const sessions = await within(ANSWER_BYTES - AROUND, page, async (record) =>
    includeSensitive
      ? sensitiveView(record, SESSION_BYTES, call, deps)
      : listedView(record, namesShown(record, call, deps)),
  );
  const more = found.length > limit || sessions.length < page.length;
  const shown = page.slice(0, sessions.length);
  return { sessions, ...(more && { nextPageToken: pageTokenBehind(shown.length > 0 ? shown : found) }) };
});

/** A user's own client may know what the user's sessions are called; others where the operator allows it. */
function namesShown(record: SessionRecord, { client }: ToolCall, { allows, mask }: ToolDeps): SessionNames {
  return client.isLocal || allows.sensitiveDetails ? SessionNames.parse(mask({ ...namesOf(record) })) : {};
}

function queryOf({ cwd, pageToken, since, status, text }: Arguments): Omit<SessionQuery, "limit" | "principal"> {
  return {
    ...(status !== undefined && { statuses: [status].flat() }),
    ...(cwd !== undefined && { cwd }),
    ...(text !== undefined && { text }),
    ...(since !== undefined && { since: timeOf(since) }),
    ...(pageToken !== undefined && { before: placeOf(pageToken) }),
  };
}

/** A day, or a moment with its zone: without one the server's would be meant, which a caller does not know. */
const ISO = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

function timeOf(since: string | number): number {
  if (typeof since === "number") return since;
  const at = /^\d{1,15}$/.test(since) ? Number(since) : ISO.test(since) ? Date.parse(since) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  const allowed = "an ISO 8601 time with its zone (2026-01-31T09:00:00Z), a day, or ms since the epoch";
  throw invalidArgument("since", `must be ${allowed}, not ${JSON.stringify(since.slice(0, 60))}.`);
}

/** As many as the budget holds, at least one: the next page goes on behind them. */
async function within(
  most: number,
  records: readonly SessionRecord[],
  present: (record: SessionRecord) => JsonObject | Promise<JsonObject>,
): Promise<JsonObject[]> {
  const shown: JsonObject[] = [];
  let left = most;
  for (const record of records) {
    const session = await present(record);
    left -= jsonBytes(session) + 1;
    if (left < 0 && shown.length > 0) break;
    shown.push(session);
  }
  return shown;
}

/** The end of a page of the list, as an opaque text. */

type Place = NonNullable<SessionQuery["before"]>;

const Content = z.tuple([z.int().min(0), z.string().min(1)]);

/**
 * The page ends at its oldest session: a session whose owner had died was recorded as lost while it was listed, which
 * makes it new, and it is not to be listed again from there.
 */
function pageTokenBehind(page: readonly SessionRecord[]): string {
  const [first, ...others] = page;
  if (!first) throw new Error("a page without a session ends nowhere");
  const { updatedAt, id } = others.reduce((oldest, each) => (isOlder(each, oldest) ? each : oldest), first);
  return encode({ updatedAt, id });
}

export function placeOf(token: string): Place {
  const place = decode(token);
  // Base64 is read leniently: what would not be written so was not written here.
  if (!place || encode(place) !== token) {
    throw invalidArgument("pageToken", "is not valid. Pass nextPageToken unchanged, or leave it out.");
  }
  return place;
}

function isOlder(a: Place, b: Place): boolean {
  return a.updatedAt === b.updatedAt ? a.id < b.id : a.updatedAt < b.updatedAt;
}

function encode({ updatedAt, id }: Place): string {
  return Buffer.from(JSON.stringify([updatedAt, id])).toString("base64url");
}

function decode(token: string): Place | undefined {
  try {
    const [updatedAt, id] = Content.parse(JSON.parse(Buffer.from(token, "base64url").toString("utf8")));
    return { updatedAt, id };
  } catch {
    return undefined;
  }
}
