import { join } from "node:path";
import { parseJson } from "../../domain/json.ts";
import { AppError } from "../../domain/error.ts";
import { readSmall } from "../../security/files/plain-file.ts";

/**
 * Checks the user's own settings: Claude Code merges the lists of all settings, so an exemption from the sandbox there would
 * hold in every session. Additional folders and hosts are the operator's choice; ways out of the sandbox are refused.
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

/** Throws PERMISSION_DENIED if user settings in `configFolder` lead out of the sandbox, or cannot be checked. */
export async function checkUserSettings(configFolder: string): Promise<void> {
  const file = join(configFolder, "settings.json");
  const names = findWaysOut(await readSmall(file, MAX_BYTES).catch(ifMissing));
  if (names.length === 0) return;
  const problem = `${file} lets commands leave the sandbox that this server requires (--sandbox required): ${names.join(", ")}.`;
  throw new AppError(
    "PERMISSION_DENIED",
    `${problem} Remove these settings, or let the session read other settings files (settingSources).`,
  );
}

/** Returns the names of settings that lead out. Invalid JSON counts as empty, because Claude Code rejects the file too. */
export function findWaysOut(text: string): string[] {
  // Some editors begin a file with a byte order mark, which Claude Code skips.
  const settings = parseJson(text.replace(/^\uFEFF/, ""));
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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
