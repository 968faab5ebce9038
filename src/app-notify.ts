import type { Config } from "./config/schema.ts";
import { ladderOf } from "./config/approvals/ladder.ts";
import { NOTICES } from "./config/notify/settings.ts";
import type { Engine } from "./engine/api.ts";
import type { Logger, SessionBackend } from "./engine/ports.ts";
import type { Masker } from "./log/mask.ts";
import { createNotifier, type Notifier } from "./notify/notifier.ts";
import type { Outcome } from "./notify/outbox.ts";
import type { Audit } from "./tools/audit.ts";

/** The assembly of the webhook; loaded only where there is one. */

export interface NotifyParts {
  readonly config: Config;
  /** Base64. */
  readonly secret: string;
  readonly version: string;
  readonly store: Pick<SessionBackend, "log" | "rows">;
  /** Called later only. */
  readonly engine: () => Engine;
  /** Where clients reach this server over HTTP; undefined where they do not. */
  readonly publicUrl: string | undefined;
  /** Counts what became of each delivery; undefined where nobody counts. */
  readonly count: ((outcome: Outcome) => void) | undefined;
  readonly audit: Audit | undefined;
  readonly masker: Masker;
  readonly log: Logger;
}

export function startNotifier(parts: NotifyParts): Notifier {
  const { audit, config, count, engine, log, masker, publicUrl, secret, store, version } = parts;
  const { notifyAttempts, notifyEvents, notifyRetryMs, notifyTimeoutMs, notifyUrl: url = "" } = config;
  // The path of such a URL can be a secret in itself.
  log.info("the webhook is told", { origin: new URL(url).origin, events: [...notifyEvents] });
  return createNotifier({
    receiver: { url, key: Buffer.from(secret, "base64"), timeoutMs: notifyTimeoutMs },
    types: new Set(NOTICES.filter((type) => notifyEvents.includes("all") || notifyEvents.includes(type))),
    limits: { attempts: notifyAttempts, retryMs: notifyRetryMs },
    version,
    mask: (fields) => masker.fields(fields),
    store,
    rung:
      publicUrl !== undefined && ladderOf(config.approvals).rungs.includes("webhook")
        ? { engine, answerUrl: answerUrlBelow(publicUrl) }
        : undefined,
    onSettled: ({ outcome, principal, requestId, sessionId, type: action }) => {
      count?.(outcome);
      audit?.({
        principal,
        tool: "webhook",
        action,
        sessionId,
        ...(requestId !== undefined && { requestId }),
        outcome,
      });
    },
    log,
  });
}

function answerUrlBelow(publicUrl: string): (sessionId: string, requestId: string) => string {
  const base = publicUrl.replace(/\/+$/, "");
  return (sessionId, requestId) => `${base}/requests/${encodeURIComponent(sessionId)}/${encodeURIComponent(requestId)}`;
}
