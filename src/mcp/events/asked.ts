import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { FEED_NAMES, type FeedName } from "../../domain/feed.ts";
import { Folder } from "../../domain/options.ts";
import type { Principal } from "../../domain/principal.ts";
import { SessionId } from "../../engine/actions/input.ts";
import type { FeedFilter, FeedQuery } from "../../engine/ports.ts";
import { parseArguments } from "../../tools/arguments/parse.ts";
import { eventError } from "./errors.ts";
import type { EventParts } from "./parts.ts";

/** Parameters of a subscription, which all three modes of delivery have. */

/** Maximum length of a cursor, characters: far above any cursor of this server. */
const MAX_CURSOR = 200;

/** Filters of a subscription; both together restrict to a session in a folder. */
export const FILTERS = {
  sessionId: SessionId.exactOptional().describe("Only events of this session"),
  cwd: Folder.exactOptional().describe("Only events of sessions that were started in this folder"),
};

export const millis = z.number().int().min(0);

export const SUBSCRIPTION = {
  arguments: z.strictObject(FILTERS).default({}),
  cursor: z.string().max(MAX_CURSOR).exactOptional(),
  maxAgeMs: millis.exactOptional(),
};

export interface Asked {
  readonly name: FeedName;
  readonly filter: FeedFilter;
  readonly after: string | undefined;
  readonly since: number | undefined;
}

/** Reads the parameters in `shape`. Throws NotFound for an unknown event, before the rest is read. */
export function readParams<S extends z.ZodRawShape>(shape: S, params: unknown) {
  const { _meta: _, name, ...given } = z.looseObject({}).parse(params ?? {});
  if (typeof name !== "string") throw invalidArgument("name", `is missing. Name one of ${FEED_NAMES.join(", ")}.`);
  const known = FEED_NAMES.find((each) => each === name);
  if (!known) {
    const advice = `There are ${FEED_NAMES.join(", ")}.`;
    throw eventError("NotFound", `There is no event ${JSON.stringify(name.slice(0, 100))}. ${advice}`, {
      kind: "event",
    });
  }
  return { ...parseArguments(z.looseObject({ ...SUBSCRIPTION, ...shape }), given, []), name: known };
}

interface ReadParams {
  readonly name: FeedName;
  readonly arguments: FeedFilter;
  readonly cursor?: string;
  readonly maxAgeMs?: number;
}

/** Returns the subscription of `principal`. Throws SESSION_NOT_FOUND for a session of another principal. */
export async function readAsked(
  { arguments: filter, cursor: after, maxAgeMs, name }: ReadParams,
  principal: Principal,
  { filterOf }: Pick<EventParts, "filterOf">,
): Promise<Asked> {
  // Without a cursor, delivery starts now, whatever `maxAgeMs` is.
  const since = maxAgeMs === undefined || after === undefined ? undefined : Date.now() - maxAgeMs;
  return { name, filter: await filterOf(principal, filter), after, since };
}

/** Returns the query for the next page of the feed. */
export function queryOf({ after, filter, name, since }: Asked, principal: Principal, limit: number): FeedQuery {
  return { principal, name, filter, after, limit, ...(since !== undefined && { since }) };
}
