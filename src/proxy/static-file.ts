import { readFileSync } from "node:fs";
import type { ByHand, Reading, SettingClass } from "../config/schemaless-checks.ts";
import { readPackage } from "../config/version.ts";
import type { PermissionMode } from "../domain/permission.ts";
import type { ToolLimits } from "../tools/arguments/wait-limits.ts";
import type { ToolName, Toolset } from "../tools/tool-names.ts";

/**
 * File of the static answers that a proxy gives before its daemon is there. The build generates the file
 * (src/app/static-answers.ts) from the answers of its server.
 */

export interface StaticFile {
  readonly version: string;
  readonly settings: readonly TableSetting[];
  readonly defaults: StaticSettings;
  /** Values of `modeKey` for which the default mode of a query is not in force. */
  readonly replacedModes: readonly string[];
  /** Protocol versions that `initialize` accepts. */
  readonly versions: readonly string[];
  /** Protocol version of the `modern` era. */
  readonly revision: string;
  /** Results by method. The proxy fills in some fields of `initialize`, `server/discover` and `tools/list`. */
  readonly results: Readonly<Record<Era, Readonly<Record<string, JsonFields>>>>;
  /** Capabilities of the server, by `capabilityKey`. */
  readonly capabilities: Readonly<Record<string, JsonFields>>;
  /** Listed tools, by `variantKey` and name. A variant has only tools that differ from the variant `""`. */
  readonly tools: Readonly<Record<string, Readonly<Partial<Record<ToolName, ListedTool>>>>>;
}

export type Era = "legacy" | "modern";
export type JsonFields = Readonly<Record<string, unknown>>;

export interface ListedTool extends JsonFields {
  readonly inputSchema: JsonFields & { readonly properties: Readonly<Record<string, JsonFields>> };
}

/** Setting, for a process without schemas. */
export interface TableSetting {
  readonly key: string;
  /** Missing for a key of an object setting, such as `query.model`. */
  readonly flag?: string;
  /** Empty if the setting has no variable. */
  readonly variable: string;
  readonly of: SettingClass;
  readonly reading: Reading;
  readonly plainWords?: boolean;
  /** `undefined` if only the server can check the value. */
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

export function variantKey(limits: Omit<ToolLimits, "maxWaitMs">): string {
  const { allowsDiskResume, followsTasks, waitsByDefault } = limits;
  const traits = [allowsDiskResume && "disk-resume", followsTasks && "tasks", waitsByDefault && "waits"];
  return traits.filter((trait) => trait !== undefined && trait !== false).join(" ");
}

/** Returns `undefined` without a file (as in the sources), or if the file is of another version. */
export function readStaticFile(): StaticFile | undefined {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the build writes it, and a test compares what comes of it
    const file = JSON.parse(readFileSync(new URL("answers.json", import.meta.url), "utf8")) as StaticFile;
    return file.version === readPackage().version ? file : undefined;
  } catch {
    return undefined;
  }
}
