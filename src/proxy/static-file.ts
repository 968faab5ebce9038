import { readFileSync } from "node:fs";
import type { ByHand, Reading, SettingClass } from "../config/by-hand.ts";
import { readPackage } from "../config/version.ts";
import type { PermissionMode } from "../domain/permission.ts";
import type { ToolName, Toolset } from "../tools/listed.ts";

/**
 * The file from which a proxy answers before its daemon is there. The build writes it (src/app/static-answers.ts) from what the
 * server of this build answers.
 */

export interface StaticFile {
  readonly version: string;
  readonly settings: readonly TableSetting[];
  readonly defaults: StaticSettings;
  /** Combinations in which the default mode of a query is not in force: `modeKey`. */
  readonly replacedModes: readonly string[];
  /** Versions that `initialize` accepts. */
  readonly versions: readonly string[];
  /** Version of the later era. */
  readonly revision: string;
  /** Results by method. Of `initialize`, `server/discover` and `tools/list` some fields are filled in. */
  readonly results: Readonly<Record<Era, Readonly<Record<string, JsonFields>>>>;
  /** Capabilities of the server, by `capabilityKey`. */
  readonly capabilities: Readonly<Record<string, JsonFields>>;
  /** Listed tools, by `variantKey` and name. Of a variant only those that differ from the first. */
  readonly tools: Readonly<Record<string, Readonly<Partial<Record<ToolName, ListedTool>>>>>;
}

export type Era = "legacy" | "modern";
export type JsonFields = Readonly<Record<string, unknown>>;

export interface ListedTool extends JsonFields {
  readonly inputSchema: JsonFields & { readonly properties: Readonly<Record<string, JsonFields>> };
}

/** A setting as far as a process without schemas has to know it. */
export interface TableSetting {
  readonly key: string;
  /** Missing for a key of a setting that is an object: `query.model`. */
  readonly flag?: string;
  /** Empty where it has none of its own. */
  readonly variable: string;
  readonly of: SettingClass;
  readonly reading: Reading;
  readonly plainWords?: boolean;
  /** Undefined where only the server can check the value. */
  readonly byHand?: ByHand;
}

/** Settings that change static answers. */
export interface StaticSettings {
  readonly toolsets: readonly (Toolset | "all")[];
  readonly dynamicDescription: boolean;
  readonly allowDiskResume: boolean;
  readonly maxWaitMs?: number;
  readonly allowBypass: boolean;
  readonly callerApproves?: string;
  readonly query: QuerySettings;
}

export interface QuerySettings {
  readonly enabled: boolean;
  readonly cwd?: string | undefined;
  readonly model?: string | undefined;
  readonly permissionMode: PermissionMode;
  readonly maxTurns?: number | undefined;
  readonly maxMessages: number;
  readonly includeSystemMessages: boolean;
  readonly allowedTools: readonly string[];
  readonly maxExecutionMs: number;
}

export function modeKey(mode: string, bound: string, allowsBypass: boolean): string {
  return [mode, bound, ...(allowsBypass ? ["bypass"] : [])].join(" ");
}

export function capabilityKey(era: Era, { logs, prompts }: { prompts: boolean; logs: boolean }): string {
  return [era, ...(prompts ? ["prompts"] : []), ...(logs ? ["logs"] : [])].join(" ");
}

export function variantKey(traits: { diskResume: boolean; oneWait: boolean }): string {
  return [...(traits.diskResume ? ["disk-resume"] : []), ...(traits.oneWait ? ["one-wait"] : [])].join(" ");
}

/** Undefined where the build has written none, as for the sources, or for another version. */
export function readStaticFile(): StaticFile | undefined {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the build writes it, and a test compares what comes of it
    const file = JSON.parse(readFileSync(new URL("answers.json", import.meta.url), "utf8")) as StaticFile;
    return file.version === readPackage().version ? file : undefined;
  } catch {
    return undefined;
  }
}
