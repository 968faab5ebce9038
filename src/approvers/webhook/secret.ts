import { ConfigError } from "../../config/error.ts";
import { NOTIFY_SECRET_VARIABLE } from "./settings.ts";
import { readPrivate } from "../../config/private-file.ts";

/** As the specification of Standard Webhooks has it, in bytes. */
const LEAST = 24;
const MOST = 64;

const PREFIX = "whsec_";

const ADVICE = `Make one with: echo "${PREFIX}$(openssl rand -base64 32)"`;

/** What the requests of the webhook are signed with, in base64. Throws ConfigError; what is wrong is told without the secret. */
export async function readNotifySecret(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const given = file === undefined ? environment[NOTIFY_SECRET_VARIABLE] : await readPrivate(file, "secret");
  const secret = given?.trim() ?? "";
  if (secret === "") {
    const where = file === undefined ? "--notify-url needs a secret to sign with" : `The secret file ${file} is empty`;
    const how = `--notify-secret-file names a file with it; the environment can hold it as ${NOTIFY_SECRET_VARIABLE}`;
    throw new ConfigError(`${where}: ${how}. ${ADVICE}`);
  }
  const base64 = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const bytes = Buffer.from(base64, "base64");
  // Node skips what is no base64; receivers would not.
  if (!/^[A-Za-z\d+/]+={0,2}$/.test(base64) || bytes.length < LEAST || bytes.length > MOST) {
    const from = file ?? NOTIFY_SECRET_VARIABLE;
    const form = `${PREFIX} and ${String(LEAST)} to ${String(MOST)} bytes in base64`;
    throw new ConfigError(`The secret of the webhook in ${from} must be ${form}. ${ADVICE}`);
  }
  return base64;
}
