import { z } from "zod";
import { invalidArgument, AppError } from "../../../domain/error.ts";
import type { JsonObject } from "../../../domain/json.ts";
import { SessionStatus, statusOf } from "../../../domain/session.ts";
import { PAGE_DEFAULT, MAX_PAGE } from "../../../engine/actions/input.ts";
import { diff as readDiff, get as getSession, list as listSessions } from "../../../engine/actions/reading.ts";
import type { SessionQuery, SessionRecord } from "../../../engine/ports.ts";
import { jsonBytes, fit } from "../../../view/size.ts";
import { briefVerification } from "../../../view/verification.ts";
import { readableSession, readResult } from "../../readable-session.ts";
import { actingCaller } from "../../scope.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { offerAs, offer } from "./action.ts";
import {
  ANSWER_BYTES,
  listedView,
  sessionNames,
  publicView,
  sensitiveView,
  rememberedOf,
  SessionNames,
} from "./session-fields.ts";

/** Shows sessions. Folders, prompts and options may be private, so they are shown only if the operator allows it. */

const IncludeSensitive = z.boolean().exactOptional().describe("Default: false");

/** Throws PERMISSION_DENIED instead of omitting `wanted`: a caller would take an omitted field for absent. */
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

/** Bytes of JSON around the session in an answer. */
const AROUND_ONE = 20;

const GET_FIELDS = { ...getSession.fields, includeSensitive: IncludeSensitive };

export const get = offerAs(getSession, GET_FIELDS, async ({ includeSensitive = false, ...which }, call, deps) => {
  checkSensitive(deps, includeSensitive ? ["includeSensitive"] : []);
  const record = await getSession.run(actingCaller(call, deps), which);
  if (!includeSensitive) return { sessions: [{ ...publicView(record), ...rememberedOf(record) }] };
  const more = { ...rememberedOf(record), ...(await readEvidence(record, call, deps)) };
  const room = ANSWER_BYTES - AROUND_ONE - jsonBytes(more);
  return { sessions: [{ ...(await sensitiveView(record, room, call, deps)), ...more }] };
});

/** Returns receipt and verification of the last turn. They name files and commands. */
async function readEvidence(record: SessionRecord, call: ToolCall, deps: ToolDeps): Promise<JsonObject> {
  const result = await readResult(readableSession(record.id, call, deps), record);
  if (!result) return {};
  const { receipt } = result;
  return fit({ ...(receipt !== undefined && { receipt }), ...briefVerification(result) }, EVIDENCE_BYTES).value;
}

const EVIDENCE_BYTES = 8_192;

export const diff = offer(readDiff, {
  present: ({ files, git }, { sessionId }, _, { mask }) => {
    const { cut, value } = fit({ files, ...(git && { git: mask(git) }) }, ANSWER_BYTES - 100, ["git"]);
    return { sessionId, ...value, ...(cut && { truncated: true }) };
  },
});

/** Maximum size of a session in a list with `includeSensitive`, bytes. `get` returns the full session. */
const SESSION_BYTES = 3_000;
/** Bytes of `nextPageToken` and of the JSON around the sessions. */
const AROUND = 300;

const Status = z.union([SessionStatus, z.array(SessionStatus).min(1).max(SessionStatus.options.length)]);

export const PageToken = z.string().min(1).max(1_000).exactOptional().describe("nextPageToken. Default: none");

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
  pageToken: PageToken,
  includeSensitive: IncludeSensitive,
};
type Arguments = z.output<z.ZodObject<typeof LIST_FIELDS>>;

/** Simplified schemas: the docs and error messages explain the unions better. */
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
  // A session of a dead owner becomes lost while listed, so its status may no longer match.
  const matching = found.filter(({ state }) => query.statuses?.includes(statusOf(state)) ?? true);
  const page = matching.slice(0, limit);
  const sessions = await presentWithin(ANSWER_BYTES - AROUND, page, async (record) =>
    includeSensitive
      ? sensitiveView(record, SESSION_BYTES, call, deps)
      : listedView(record, visibleNames(record, call, deps)),
  );
  const more = found.length > limit || sessions.length < page.length;
  const shown = page.slice(0, sessions.length);
  return { sessions, ...(more && { nextPageToken: pageTokenBehind(shown.length > 0 ? shown : found) }) };
});

/** Returns title and folder for a client on the user's own machine; for others, only if the operator allows it. */
function visibleNames(record: SessionRecord, { client }: ToolCall, { allows, mask }: ToolDeps): SessionNames {
  return client.isLocal || allows.sensitiveDetails ? SessionNames.parse(mask({ ...sessionNames(record) })) : {};
}

function queryOf({ cwd, pageToken, since, status, text }: Arguments): Omit<SessionQuery, "limit" | "principal"> {
  return {
    ...(status !== undefined && { statuses: [status].flat() }),
    ...(cwd !== undefined && { cwd }),
    ...(text !== undefined && { text }),
    ...(since !== undefined && { since: parseTime(since) }),
    ...(pageToken !== undefined && { before: readPageToken(pageToken) }),
  };
}

/** A day, or a time with a zone. Without a zone the server's would apply, which is unknown to the caller. */
const ISO = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

function parseTime(since: string | number): number {
  if (typeof since === "number") return since;
  const at = /^\d{1,15}$/.test(since) ? Number(since) : ISO.test(since) ? Date.parse(since) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  const allowed = "an ISO 8601 time with its zone (2026-01-31T09:00:00Z), a day, or ms since the epoch";
  throw invalidArgument("since", `must be ${allowed}, not ${JSON.stringify(since.slice(0, 60))}.`);
}

/** Presents as many records as fit into `most` bytes, at least one. The next page continues with the rest. */
async function presentWithin(
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

/** Page tokens: the end of a page, as an opaque text. */

type PagePosition = NonNullable<SessionQuery["before"]>;

const Content = z.tuple([z.int().min(0), z.string().min(1)]);

/**
 * Returns the position of the oldest session of the page. Sessions of a dead owner become lost while listed and so move to the
 * front; a token at such a session would list the page again.
 */
function pageTokenBehind(page: readonly SessionRecord[]): string {
  const [first, ...others] = page;
  if (!first) throw new Error("a page without a session ends nowhere");
  const { updatedAt, id } = others.reduce((oldest, each) => (isOlder(each, oldest) ? each : oldest), first);
  return encode({ updatedAt, id });
}

export function readPageToken(token: string): PagePosition {
  const place = decode(token);
  // Base64 decoding is lenient: a token that encodes differently was not made here.
  if (!place || encode(place) !== token) {
    throw invalidArgument("pageToken", "is not valid. Pass nextPageToken unchanged, or leave it out.");
  }
  return place;
}

function isOlder(a: PagePosition, b: PagePosition): boolean {
  return a.updatedAt === b.updatedAt ? a.id < b.id : a.updatedAt < b.updatedAt;
}

function encode({ updatedAt, id }: PagePosition): string {
  return Buffer.from(JSON.stringify([updatedAt, id])).toString("base64url");
}

function decode(token: string): PagePosition | undefined {
  try {
    const [updatedAt, id] = Content.parse(JSON.parse(Buffer.from(token, "base64url").toString("utf8")));
    return { updatedAt, id };
  } catch {
    return undefined;
  }
}
