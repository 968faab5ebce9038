import { join } from "node:path";
import { AppError } from "../../domain/error.ts";
import { readSmall } from "../../security/files/plain-file.ts";

/**
 * Claude Code unites the lists of all settings, so what the user's own settings exempt from the sandbox would be exempt
 * in every session. Folders and hosts that they add are the operator's to add; what leads out of the sandbox is not taken.
 */

const WAYS_OUT = [
  "excludedCommands",
  "ripgrep",
  "filesystem.allowRead",
  "network.allowUnixSockets",
  "network.allowMachLookup",
  "network.httpProxyPort",
  "network.socksProxyPort",
  "network.tlsTerminate",
];

const MAX_BYTES = 16_777_216;

/** Throws PERMISSION_DENIED where the user settings in this configuration folder lead out of the sandbox, or cannot be told. */
export async function checkUserSettings(configFolder: string): Promise<void> {
  const file = join(configFolder, "settings.json");
  const names = waysOut(await readSmall(file, MAX_BYTES).catch(ifMissing));
  if (names.length === 0) return;
  const problem = `${file} lets commands leave the sandbox that this server requires (--sandbox required): ${names.join(", ")}.`;
  throw new AppError(
    "PERMISSION_DENIED",
    `${problem} Remove these settings, or let the session read other settings files (settingSources).`,
  );
}

/** The names of the settings that lead out. What is no JSON Claude Code rejected either. */
export function waysOut(text: string): string[] {
  const settings = parsed(text);
  return WAYS_OUT.map((way) => `sandbox.${way}`).filter((name) => {
    const value = name.split(".").reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), settings);
    return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
  });
}

function ifMissing(error: unknown): string {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return "{}";
  const problem = `The user settings cannot be checked (${error instanceof Error ? error.message : String(error)})`;
  throw new AppError("PERMISSION_DENIED", `${problem}, which --sandbox required needs. Make the file readable.`);
}

function parsed(text: string): unknown {
  try {
    // Some editors begin a file with a byte order mark, which Claude Code reads past.
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
