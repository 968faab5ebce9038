import type { ApproverParts, StartedApprover } from "../approver.ts";
import { Notifier } from "./notifier.ts";
import { NOTICES, notifyConfigOf } from "./settings.ts";

/** The webhook, put together; loaded only where there is one. */
export function startWebhook(parts: ApproverParts): StartedApprover | undefined {
  const { audit, config, http, isNamed, log, mask, secret, store, version } = parts;
  if (secret === undefined) return undefined;
  const { notifyAttempts, notifyEvents, notifyRetryMs, notifyTimeoutMs, notifyUrl: url = "" } = notifyConfigOf(config);
  // The path of such a URL can be a secret in itself.
  log.info("the webhook is told", { origin: new URL(url).origin, events: [...notifyEvents] });
  const answerUrl = isNamed && http ? answerUrlBelow(http.publicUrl) : undefined;
  const notifier = new Notifier({
    receiver: { url, key: Buffer.from(secret, "base64"), timeoutMs: notifyTimeoutMs },
    types: new Set(NOTICES.filter((type) => notifyEvents.includes("all") || notifyEvents.includes(type))),
    limits: { attempts: notifyAttempts, retryMs: notifyRetryMs },
    version,
    mask,
    store,
    answerUrl,
    onSettled: ({ outcome, principal, requestId, sessionId, type: action }) => {
      http?.countDelivery(outcome);
      const about = { principal, tool: "webhook", action, sessionId, ...(requestId !== undefined && { requestId }) };
      audit?.({ ...about, outcome });
    },
    log,
  });
  return {
    ...(answerUrl && { port: notifier }),
    onAppended: (sessionId, change) => notifier.onAppended(sessionId, change),
    close: async (graceMs) => notifier.close(graceMs),
  };
}

function answerUrlBelow(publicUrl: string): (sessionId: string, requestId: string) => string {
  const base = publicUrl.replace(/\/+$/, "");
  return (sessionId, requestId) => `${base}/requests/${encodeURIComponent(sessionId)}/${encodeURIComponent(requestId)}`;
}
