import type { Approver } from "../approver.ts";
import { checkNotifying, NOTIFY_SECRET_VARIABLE, notifyConfigOf, notifyFields, readNotifySecret } from "./settings.ts";

/** The receiver of the webhook. Also notified of ended turns, even if not on the approval chain. */
export const webhook: Approver = {
  name: "webhook",
  words: { who: "the webhook", by: "by the webhook" },
  docs: { is: "the receiver at `--notify-url` (needs `--http`)", time: "600 s (`webhook:<ms>`)" },
  time: { usualMs: 600_000 },
  settings: notifyFields,
  check: checkNotifying,
  secret: {
    variable: NOTIFY_SECRET_VARIABLE,
    read: async (config, environment) => {
      const { notifySecretFile, notifyUrl } = notifyConfigOf(config);
      if (notifyUrl === undefined) return undefined;
      return readNotifySecret(notifySecretFile, environment);
    },
  },
  closed: (config) => {
    const { notifySecretFile: path } = notifyConfigOf(config);
    // Protected because the secret authenticates this server.
    return path === undefined ? [] : [{ path, why: "the secret of this server's webhook" }];
  },
  start: async (parts) => {
    const { startWebhook } = await import("./notifier.ts");
    return startWebhook(parts);
  },
};
