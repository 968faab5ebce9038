import { PassThrough } from "node:stream";
import { approverFields } from "../config/approvals/approver-fields.ts";
import { REMOVED_VARIABLES } from "../config/removed.ts";
import { httpFields } from "../config/http.ts";
import { loadConfig } from "../config/load.ts";
import { QUERY_KEYS, QUERY_VARIABLES } from "../config/query.ts";
import { CONFIG_FILE, SETTINGS } from "../config/schema.ts";
import { readPackage } from "../config/version.ts";
import { BOUNDS } from "../domain/approvals/risk.ts";
import { PERMISSION_MODES } from "../domain/permission.ts";
import {
  capabilityKey,
  modeKey,
  variantKey,
  type Era,
  type JsonFields,
  type ListedTool,
  type StaticFile,
  type StaticSettings,
  type TableSetting,
} from "../proxy/static-file.ts";
import { TASKS_EXTENSION, waitLimits, type WaitingClient } from "../tools/arguments/wait-limits.ts";
import { effectiveMode } from "../tools/query/settings.ts";
import { createApp } from "./app.ts";

/** Writes the static answers of a proxy to stdout, as a real server gives them. Run by the build; not part of the package. */

/** Supported versions of the 2025 era. A proxy leaves clients with other versions to the daemon. */
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];
const REVISION = "2026-07-28";
const LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/** Settings checked against other settings or the machine. A proxy leaves clients with any of them to the daemon. */
const CHECKED_AT_START = [
  ...Object.keys(approverFields),
  ...Object.keys(httpFields),
  "sandbox",
  "processIsolation",
  "query.cwd",
  "storePasswordFile",
];

/** A toolset for each combination of capabilities. */
const TOOLSETS = [
  { toolset: "agent", prompts: true, logs: true },
  { toolset: "query", prompts: false, logs: true },
  { toolset: "configure", prompts: false, logs: false },
];

const CAPABILITIES = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };

/** Clients with different answers. Only the 2026 era has tasks. */
const CLIENTS = [{ name: "client" }, { name: "claude-code" }, { name: "client", capabilities: CAPABILITIES }];

interface AskOptions {
  readonly client?: WaitingClient;
  readonly version?: string;
}

type Ask = (method: string, asked?: AskOptions) => Promise<JsonFields>;

/** Starts a server with flags `argv`. Returns functions to ask it as a client of each era. */
function server(...argv: string[]): Record<Era, Ask> {
  const config = loadConfig({ argv: [...argv, "--log-level", "silent", "--store", "memory:"], env: {} });
  const start = { cwd: () => "/", ownCommands: [], config, environment: {} };
  const app = createApp({ ...start, depth: 0, start, info: readPackage() });
  const connect = () => {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    app.serveClient({ start, streams: { stdin, stdout }, onClose: () => undefined });
    return async (method: string, params: object) => {
      const line = new Promise<string>((resolve) => stdout.once("data", (data) => resolve(String(data))));
      stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
      return resultIn(await line, method);
    };
  };
  return {
    legacy: async (method, { client: { name = "client" } = {}, version = VERSIONS[0] } = {}) => {
      const ask = connect();
      const clientInfo = { name, version: "1" };
      const answer = await ask("initialize", { protocolVersion: version, capabilities: {}, clientInfo });
      return method === "initialize" ? answer : ask(method, {});
    },
    modern: async (method, { client: { capabilities: declared = {}, name = "client" } = {} } = {}) => {
      const prefix = "io.modelcontextprotocol/";
      const meta = {
        [`${prefix}protocolVersion`]: REVISION,
        [`${prefix}clientInfo`]: { name, version: "1" },
        [`${prefix}clientCapabilities`]: declared,
      };
      return connect()(method, { _meta: meta });
    },
  };
}

function requireFields(value: unknown): JsonFields {
  if (typeof value !== "object" || value === null) throw new Error(`no object: ${String(value)}`);
  return { ...value };
}

/** Throws on an error, and on an answer that a proxy would serialize differently. */
function resultIn(line: string, method: string): JsonFields {
  const { id, jsonrpc, result } = requireFields(JSON.parse(line));
  if (`${JSON.stringify({ result, jsonrpc, id })}\n` === line) return requireFields(result);
  throw new Error(`${method} is answered in another form: ${line.slice(0, 200)}`);
}

async function resultsOf(era: Era, introduction: string): Promise<Record<string, JsonFields>> {
  const { [era]: ask } = server();
  const methods = [introduction, ...LISTS];
  const results = await Promise.all(methods.map(async (method) => [method, await ask(method)] as const));
  const { "tools/list": listed, ...others } = Object.fromEntries(results);
  return { ...others, "tools/list": { ...listed, tools: [] } };
}

async function capabilities(): Promise<Record<string, JsonFields>> {
  const rows = TOOLSETS.map(async ({ toolset, ...traits }) => {
    const { legacy, modern } = server("--toolsets", toolset);
    const [first, later] = await Promise.all([legacy("initialize"), modern("server/discover")]);
    return [
      [capabilityKey("legacy", traits), requireFields(first["capabilities"])],
      [capabilityKey("modern", traits), requireFields(later["capabilities"])],
    ] as const;
  });
  return Object.fromEntries((await Promise.all(rows)).flat());
}

/** Returns tools by variant and name. Throws if the eras differ, because a proxy has one list for both. */
async function tools(): Promise<StaticFile["tools"]> {
  const variants = [false, true].flatMap((diskResume) => CLIENTS.map((client) => ({ client, diskResume })));
  const listed: [string, Record<string, ListedTool>][] = await Promise.all(
    variants.map(async ({ client, diskResume }) => {
      const flags = diskResume ? ["--allow-disk-resume"] : [];
      const { legacy, modern } = server("--toolsets", "all", ...flags);
      const [first, later] = await Promise.all([legacy("tools/list", { client }), modern("tools/list", { client })]);
      const limits = waitLimits(undefined, client);
      if (!limits.followsTasks && !isSame(first["tools"], later["tools"]))
        throw new Error("the two eras list tools differently");
      const all = Object.values(requireFields(later["tools"])).map(listedTool);
      return [
        variantKey({ ...limits, allowsDiskResume: diskResume }),
        Object.fromEntries(all.map((tool) => [String(tool["name"]), tool])),
      ];
    }),
  );
  const [[, first] = ["", {}]] = listed;
  return Object.fromEntries(
    listed.map(([key, all]) => {
      const differing = Object.entries(all).filter(([name, tool]) => key === "" || !isSame(tool, first[name]));
      return [key, Object.fromEntries(differing)];
    }),
  );
}

function listedTool(value: unknown): ListedTool {
  const tool = requireFields(value);
  const { properties, ...schema } = requireFields(tool["inputSchema"]);
  const parameters = Object.entries(requireFields(properties)).map(
    ([name, each]) => [name, requireFields(each)] as const,
  );
  // Puts `properties` last, as in the listing.
  return { ...tool, inputSchema: { ...schema, properties: Object.fromEntries(parameters) } };
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Returns the versions with the same answers as the first. */
async function versions(): Promise<string[]> {
  const { legacy } = server();
  const answers = await Promise.all(
    VERSIONS.map(async (version) => {
      const introduction = await legacy("initialize", { version });
      const lists = await Promise.all(LISTS.map(async (method) => legacy(method, { version })));
      return {
        version,
        given: introduction["protocolVersion"],
        rest: [{ ...introduction, protocolVersion: "" }, lists],
      };
    }),
  );
  const [first] = answers;
  return answers
    .filter(({ given, rest, version }) => given === version && isSame(rest, first?.rest))
    .map((each) => each.version);
}

function replacedModes(): string[] {
  const all = PERMISSION_MODES.flatMap((mode) =>
    BOUNDS.flatMap((bound) => [true, false].map((allowsBypass) => ({ mode, bound, allowsBypass }))),
  );
  const replaced = all.filter(({ mode, ...gate }) => effectiveMode(mode, gate).why !== undefined);
  return replaced.map(({ allowsBypass, bound, mode }) => modeKey(mode, bound, allowsBypass));
}

function table(): TableSetting[] {
  const gone = REMOVED_VARIABLES.map((name) => ({
    key: name,
    flag: name,
    variable: name,
    of: "server" as const,
    reading: "text" as const,
  }));
  const settings = SETTINGS.map(({ byHand, flag, key, of, plainWords, reading, variable }) => {
    const isByHand = byHand && !CHECKED_AT_START.includes(key);
    const check = key === CONFIG_FILE.key ? {} : isByHand ? byHand : undefined;
    return { key, flag, variable, of, reading, ...(plainWords && { plainWords }), ...(check && { byHand: check }) };
  });
  const keys = QUERY_KEYS.map(({ byHand, key, of, plainWords, reading, variable }) => {
    const own = QUERY_VARIABLES.some((each) => each.key === key) ? variable : "";
    const check = CHECKED_AT_START.includes(key) ? undefined : byHand;
    return { key, variable: own, of, reading, ...(plainWords && { plainWords }), ...(check && { byHand: check }) };
  });
  return [...settings, ...keys, ...gone];
}

function defaults(): StaticSettings {
  const config = loadConfig({ argv: [], env: {} });
  return {
    toolsets: config.toolsets,
    dynamicDescription: config.dynamicDescription,
    allowDiskResume: config.allowDiskResume,
    allowBypass: config.allowBypass,
    query: config.query,
  };
}

async function staticFile(): Promise<StaticFile> {
  return {
    version: readPackage().version,
    revision: REVISION,
    versions: await versions(),
    settings: table(),
    defaults: defaults(),
    replacedModes: replacedModes(),
    capabilities: await capabilities(),
    results: { legacy: await resultsOf("legacy", "initialize"), modern: await resultsOf("modern", "server/discover") },
    tools: await tools(),
  };
}

process.stdout.write(JSON.stringify(await staticFile()), () => process.exit(0));
