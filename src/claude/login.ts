import { join } from "node:path";
import { JsonObject } from "../domain/json.ts";
import { readSmall } from "../security/files/plain-file.ts";
import { configFolder, MAX_STATE_BYTES, payingVariable, stateFile } from "./child-environment.ts";

/**
 * Finds a login or a key by variables and files alone, before any Claude Code can be asked. Does not check validity, and
 * reveals no credential.
 */

export interface LoginSearch {
  /** Variable or file with the login; `undefined` if none was found. */
  readonly found: string | undefined;
  /** Examined files. */
  readonly files: readonly string[];
}

/** Searches variables first, then files. */
export async function findLogin(environment: Readonly<Record<string, string>>): Promise<LoginSearch> {
  const folder = configFolder(environment);
  const places: readonly LoginFile[] = [
    { file: join(folder, ".credentials.json"), hasLogin: () => true },
    // Present even if the login itself is in the keychain of the system.
    { file: stateFile(environment), hasLogin: (content) => hasAny(content, ["oauthAccount", "primaryApiKey"]) },
    { file: join(folder, "settings.json"), hasLogin: givesKey },
    { file: managedSettings(), hasLogin: givesKey },
  ];
  const files = places.map(({ file }) => file);
  const variable = payingVariable(environment);
  if (variable !== undefined) return { found: variable, files };
  for (const { file, hasLogin } of places) {
    const content = await readContent(file);
    if (content && hasLogin(content)) return { found: file, files };
  }
  return { found: undefined, files };
}

interface LoginFile {
  readonly file: string;
  readonly hasLogin: (content: JsonObject) => boolean;
}

function hasAny(content: JsonObject, keys: readonly string[]): boolean {
  return keys.some((key) => content[key] !== undefined && content[key] !== null && content[key] !== "");
}

function givesKey(content: JsonObject): boolean {
  const variables = Object.entries(JsonObject.safeParse(content["env"]).data ?? {});
  const texts = variables.filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return hasAny(content, ["apiKeyHelper"]) || payingVariable(Object.fromEntries(texts)) !== undefined;
}

/** Returns the path of the administrator's settings for the machine. */
export function managedSettings(): string {
  const folders: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
    darwin: "/Library/Application Support/ClaudeCode",
    win32: "C:\\Program Files\\ClaudeCode",
  };
  return join(folders[process.platform] ?? "/etc/claude-code", "managed-settings.json");
}

/** `undefined` for a file that is unreadable, too large or not JSON. */
export async function readContent(file: string): Promise<JsonObject | undefined> {
  try {
    return JsonObject.safeParse(JSON.parse(await readSmall(file, MAX_STATE_BYTES))).data;
  } catch {
    return undefined;
  }
}
