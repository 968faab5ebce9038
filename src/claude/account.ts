import { createHash } from "node:crypto";
import { z } from "zod";
import type { Account } from "../domain/plan.ts";
import { stat } from "../security/files/limited.ts";
import { readSmall } from "../security/files/plain-file.ts";
import { configFolder, identify, MAX_STATE_BYTES, payingVariable, stateFile } from "./child-environment.ts";

/** Names the account that pays for a process, without any credential. */

const TOKEN = "CLAUDE_CODE_OAUTH_TOKEN";

const State = z.object({ oauthAccount: z.object({ accountUuid: z.string().min(1) }) });

/**
 * Returns the account of a process with this environment. Its id is the account uuid that the login has left in the
 * configuration folder, a digest of a token, or the folder.
 */
export async function readAccount(environment: Readonly<Record<string, string>>): Promise<Account> {
  const { configFolder: folder, paidBy } = identify(environment);
  const variable = payingVariable(environment);
  const known = { paidBy, configFolder: folder, hasWindows: variable === undefined || variable === TOKEN };
  if (variable !== undefined) {
    const credential = environment[variable] ?? "";
    return { ...known, id: `${variable}:${createHash("sha256").update(credential).digest("hex").slice(0, 32)}` };
  }
  const uuid = await readUuid(stateFile(environment));
  return { ...known, id: uuid === undefined ? `folder:${configFolder(environment)}` : `account:${uuid}` };
}

/** Last read uuids by file, with the time of the file's last change, because the file can have megabytes. */
const read = new Map<string, { readonly changedMs: number; readonly uuid: string | undefined }>();

async function readUuid(file: string): Promise<string | undefined> {
  try {
    const { mtimeMs: changedMs } = await stat(file);
    const known = read.get(file);
    if (known?.changedMs === changedMs) return known.uuid;
    const content: unknown = JSON.parse(await readSmall(file, MAX_STATE_BYTES));
    const uuid = State.safeParse(content).data?.oauthAccount.accountUuid;
    read.set(file, { changedMs, uuid });
    return uuid;
  } catch {
    // Missing, unreadable or not JSON: nobody has logged in there.
    return undefined;
  }
}
