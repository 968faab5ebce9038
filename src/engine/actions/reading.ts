import { Folder } from "../../domain/options.ts";
import type { SessionQuery } from "../ports.ts";
import { defineAction, defineRequest } from "./action.ts";
import { SearchText, SessionId } from "./input.ts";

/** What is only looked at. */

/** The caller's own sessions, the newest first. */
export const list = defineRequest({
  name: "list",
  scope: "read",
  fields: { cwd: Folder.exactOptional(), text: SearchText.exactOptional() },
  run: async ({ caller: { principal }, engine }, query: Omit<SessionQuery, "principal">) =>
    engine.list({ ...query, principal }),
});

export const get = defineAction({
  name: "get",
  scope: "read",
  fields: { sessionId: SessionId },
  run: async ({ caller: { principal }, engine }, { sessionId }) => engine.get(principal, sessionId),
});

interface Part {
  readonly sessionId: string;
  readonly from: number;
  readonly limit: number;
}

/** What has happened in a session: its log, or that there is something new in it. */
export const events = defineRequest({
  name: "events",
  scope: "read",
  fields: { sessionId: SessionId },
  run: async ({ caller: { principal }, engine }, { from, limit, sessionId }: Part) =>
    engine.read(principal, sessionId, from, limit),
});
