import type { Result, ServerContext } from "@modelcontextprotocol/server";
import { invalidArgument } from "../../domain/error.ts";
import { mayNameWebhooks } from "../../domain/feed.ts";
import { events } from "../../engine/actions/reading.ts";
import { requireScope } from "../../engine/actions/scope.ts";
import type { ReportFault } from "../../tools/errors.ts";
import { callerOf } from "../caller.ts";
import type { ServerOptions } from "../server-options.ts";
import { limitsOf, type ClientFacts } from "../tool-call.ts";
import { readField } from "../unanswered-requests.ts";
import { eventError, toEventError } from "./errors.ts";
import { listEvents } from "./list.ts";
import { MAX_STREAMS } from "./open-streams.ts";
import type { EventMethod, EventOptions } from "./parts.ts";
import { pollEvents } from "./poll.ts";
import { openStream } from "./stream.ts";
import { requireWebhooks, subscribe, unsubscribe } from "./subscribe.ts";

interface EventServer extends Pick<ServerOptions, "leaving" | "limits" | "log"> {
  readonly events: EventOptions;
  readonly client: Pick<ClientFacts, "clientInfo">;
  /** The server instance, which ends its own streams. */
  readonly owner: object;
}

interface EventRequest {
  readonly params: unknown;
  readonly context: ServerContext;
  readonly server: EventServer;
  readonly report: ReportFault;
}

/** Answers a request of the Events extension (SEP-3415). */
export async function answerEvents(
  method: EventMethod,
  params: unknown,
  context: ServerContext,
  server: EventServer,
): Promise<Result> {
  const report: ReportFault = (fault, cause) =>
    server.log.error("a request of the Events extension has failed", { fault, method, error: cause });
  try {
    requireScope(callerOf(context), events.scope, method);
    return await METHODS[method]({ params, context, server, report });
  } catch (error) {
    throw toEventError(error, report);
  }
}

const METHODS: Readonly<Record<EventMethod, (request: EventRequest) => Promise<Result> | Result>> = {
  "events/list": ({ context, params, server }) => {
    // All events fit on the first page.
    if (readField(params, "cursor") !== undefined) throw invalidArgument("cursor", "there are no more pages.");
    const { reach } = server.events;
    const hasWebhooks = reach !== "off" && mayNameWebhooks(callerOf(context).principal, reach);
    return listEvents(["poll", "push", ...(hasWebhooks ? (["webhook"] as const) : [])]);
  },
  "events/poll": async ({ context, params, server }) => {
    const parts = await server.events.parts();
    const { maxWaitMs } = limitsOf(context, server.client, server);
    const { principal } = callerOf(context);
    const poll = async (signal: AbortSignal) => pollEvents(params, parts, { maxWaitMs, principal, signal });
    const { signal } = context.mcpReq;
    return server.leaving ? server.leaving.runCall(signal, poll) : poll(signal);
  },
  "events/stream": async (request) => {
    await stream(request);
    return { _meta: {} };
  },
  "events/subscribe": async ({ context, params, server: { events: all } }) => {
    const { principal } = callerOf(context);
    requireWebhooks(all.reach, principal);
    const [parts, webhooks] = await Promise.all([all.parts(), all.webhooks()]);
    return subscribe(params, { parts, webhooks }, { principal });
  },
  "events/unsubscribe": async ({ context, params, server: { events: all } }) => {
    const { principal } = callerOf(context);
    requireWebhooks(all.reach, principal);
    return unsubscribe(params, await all.webhooks(), { principal });
  },
};

/** Sends the events of a stream until the client cancels the request, or until the server ends. */
async function stream({ context, params, report, server }: EventRequest): Promise<void> {
  const { id, notify, signal } = context.mcpReq;
  const { principal } = callerOf(context);
  const meta = { "io.modelcontextprotocol/subscriptionId": id };
  const opened = await openStream(params, await server.events.parts(), {
    principal,
    send: async (kind, fields) =>
      notify({ method: `notifications/events/${kind}`, params: { ...fields, _meta: meta } }),
    describe: (error) => {
      const { code, message } = toEventError(error, report);
      return { code, message };
    },
  });
  const { events: all, owner } = server;
  if (all.streams.isFull(principal)) {
    const problem = `${String(MAX_STREAMS)} streams are open already. Close one, or poll.`;
    throw eventError("ResourceExhausted", problem, { limit: "streams", max: MAX_STREAMS });
  }
  await all.streams.run({ owner, principal, signal }, async (ending) => opened.run(ending));
}
