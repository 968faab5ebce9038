import { z } from "zod";
import { invalidArgument } from "../../../domain/error.ts";
import type { SessionQuery, SessionRecord } from "../../../engine/ports.ts";

/** Where a page of the list ended, as text that nobody is to look into. */

type Place = NonNullable<SessionQuery["before"]>;

const Content = z.tuple([z.int().min(0), z.string().min(1)]);

/**
 * The page ends at its oldest session: a session whose owner had died was recorded as lost while it was listed, which
 * makes it new, and it is not to be listed again from there.
 */
export function pageTokenBehind(page: readonly SessionRecord[]): string {
  const [first, ...others] = page;
  if (!first) throw new Error("a page without a session ends nowhere");
  const { updatedAt, id } = others.reduce((oldest, each) => (isOlder(each, oldest) ? each : oldest), first);
  return encode({ updatedAt, id });
}

export function placeOf(token: string): Place {
  const place = decode(token);
  // Base64 is read leniently: what would not be written so was not written here.
  if (!place || encode(place) !== token) {
    throw invalidArgument("pageToken", "is not one of this list. Pass nextPageToken as it came, or leave it out.");
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
