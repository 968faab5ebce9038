import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Command, CommandReply } from "../../domain/command.ts";
import type { Engine } from "../api.ts";

/** Operations that are a single command to the owner of a session. */

/** Reply to a command that was carried out. */
export type AcceptedReply = Extract<CommandReply, { ok: true }>;

type Operations = Pick<
  Engine,
  "cancel" | "clientGone" | "close" | "delivered" | "extend" | "fill" | "interrupt" | "pass" | "queue" | "revoke"
>;

export function createCommandOperations(
  send: (sessionId: string, command: Command) => Promise<AcceptedReply>,
): Operations {
  const about = (principal: string) => ({ id: randomUUID(), principal });
  return {
    revoke: async (principal, sessionId, data) => {
      const done = await send(sessionId, { ...about(principal), kind: "revoke", data });
      return z.object({ revoked: z.array(z.string()) }).parse(done.data).revoked;
    },
    queue: async (principal, sessionId, data) =>
      void (await send(sessionId, { ...about(principal), kind: "queue", data })),
    pass: async (principal, sessionId, data) =>
      void (await send(sessionId, { ...about(principal), kind: "pass", data })),
    fill: async (principal, sessionId, data) =>
      void (await send(sessionId, { ...about(principal), kind: "fill", data })),
    extend: async (principal, sessionId, requestId) =>
      void (await send(sessionId, { ...about(principal), kind: "extend", data: { requestId } })),
    delivered: async (principal, sessionId, requests) => {
      if (requests.length === 0) return;
      await send(sessionId, { ...about(principal), kind: "delivered", data: { requests } });
    },
    interrupt: async (principal, sessionId, by, promptId) => {
      const data = { by, ...(promptId !== undefined && { promptId }) };
      return send(sessionId, { ...about(principal), kind: "interrupt", data });
    },
    clientGone: async (principal, sessionId, promptId) => {
      const data = { by: "the end of its client", promptId, isClientGone: true };
      await send(sessionId, { ...about(principal), kind: "interrupt", data });
    },
    cancel: async (principal, sessionId, data) =>
      void (await send(sessionId, { ...about(principal), kind: "cancel", data })),
    close: async (principal, sessionId, by) =>
      void (await send(sessionId, { ...about(principal), kind: "close", data: { by } })),
  };
}
