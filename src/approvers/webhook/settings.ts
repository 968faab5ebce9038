import { z } from "zod";
import { ConfigError } from "../../config/error.ts";
import { isSafeAddress } from "../../config/loopback.ts";
import { path, text } from "../../config/setting.ts";
import { readPrivateFile } from "../../config/private-file.ts";
import type { Settings } from "../approver.ts";

/** Settings of the webhook, which is notified of requests and ended turns outside of any client. */

export const NoticeType = z.enum(["permission.asked", "question.asked", "turn.ended", "budget.reached"]);
export type NoticeType = z.infer<typeof NoticeType>;

/** Key that signs deliveries. Not a flag, because every user of the machine can see arguments of processes. */
export const NOTIFY_SECRET_VARIABLE = "CLAUDE_CODE_MCP_NOTIFY_SECRET";

export const notifyFields = {
  notifyUrl: text("none", {
    flag: "notify-url",
    variable: "CLAUDE_CODE_MCP_NOTIFY_URL",
    meaning: `URL of a webhook. It must be https, or http on loopback. Receives a signed POST for each permission request and each finished turn; needs --notify-secret-file, or ${NOTIFY_SECRET_VARIABLE} in the environment. See docs/approvals.md.`,
  }),
  notifySecretFile: path("none", {
    flag: "notify-secret-file",
    variable: "CLAUDE_CODE_MCP_NOTIFY_SECRET_FILE",
    meaning: "File with the signing secret of the webhook. Readable only by you: whsec_ and 24 to 64 bytes in base64.",
  }),
};

const NotifyConfig = z.object(notifyFields);

/** Picks the fields of `notifyFields` from the whole configuration. */
export function notifyConfigOf(config: Settings): z.output<typeof NotifyConfig> {
  return NotifyConfig.parse(config);
}

/** Checks the settings of the webhook. Requires https, because requests may contain code and commands. Throws `ConfigError`. */
export function checkNotifying(config: Settings, isNamed: boolean): void {
  const { notifySecretFile, notifyUrl } = notifyConfigOf(config);
  if (isNamed) {
    if (notifyUrl === undefined) throw new ConfigError("--approvals includes webhook, so --notify-url is required.");
    if (config["http"] === undefined) {
      throw new ConfigError(
        "--approvals includes webhook, whose answers arrive over HTTP. Add --http, or remove webhook.",
      );
    }
  }
  if (notifyUrl === undefined) {
    if (notifySecretFile === undefined) return;
    throw new ConfigError("--notify-secret-file requires --notify-url. Add it.");
  }
  if (!isSafeAddress(notifyUrl)) throw new ConfigError("--notify-url must be an https URL (http only on loopback).");
  const { password, username } = new URL(notifyUrl);
  if (username === "" && password === "") return;
  throw new ConfigError(
    "--notify-url must not contain a user or password. The receiver authenticates the server by its signature.",
  );
}

/** Bounds of the key in bytes, by the specification of Standard Webhooks. */
const MIN_BYTES = 24;
const MAX_BYTES = 64;

const PREFIX = "whsec_";

const ADVICE = `Make one with: echo "${PREFIX}$(openssl rand -base64 32)"`;

/** Reads the key that signs deliveries, in base64. Throws `ConfigError`; the message never contains the secret. */
export async function readNotifySecret(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const given = file === undefined ? environment[NOTIFY_SECRET_VARIABLE] : await readPrivateFile(file, "secret");
  const secret = given?.trim() ?? "";
  if (secret === "") {
    const where = file === undefined ? "--notify-url requires a signing secret" : `The secret file ${file} is empty`;
    const how = `set --notify-secret-file, or ${NOTIFY_SECRET_VARIABLE} in the environment`;
    throw new ConfigError(`${where}: ${how}. ${ADVICE}`);
  }
  const base64 = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const bytes = Buffer.from(base64, "base64");
  // `Buffer.from` skips characters that are not base64; receivers would not.
  if (!/^[A-Za-z\d+/]+={0,2}$/.test(base64) || bytes.length < MIN_BYTES || bytes.length > MAX_BYTES) {
    const from = file ?? NOTIFY_SECRET_VARIABLE;
    const form = `${PREFIX} and ${String(MIN_BYTES)} to ${String(MAX_BYTES)} bytes in base64`;
    throw new ConfigError(`The secret of the webhook in ${from} must be ${form}. ${ADVICE}`);
  }
  return base64;
}
