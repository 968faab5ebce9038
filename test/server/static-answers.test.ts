import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/domain/approvals/risk.ts";
import { PERMISSION_MODES } from "../../src/domain/permission.ts";
import { StaticAnswers } from "../../src/proxy/static-answers.ts";
import type { TableSetting } from "../../src/proxy/static-file.ts";
import { inProcessServer } from "../kit/servers/in-process-server.ts";
import {
  CLAUDE_CODE,
  INFO,
  initialize,
  legacyLines,
  line,
  modern,
  modernLines,
  PREFIX,
  STATIC_FILE,
} from "../kit/clients/opening-lines.ts";

/** A proxy answers byte for byte as its daemon would, or leaves the answer to the daemon. */

const folder = mkdtempSync(join(tmpdir(), "ccm-static-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Settings {
  readonly argv: string[];
  readonly env: Record<string, string>;
}

let files = 0;

/** Writes a file of settings with `text`, and returns the flag for the file. */
function file(text: unknown): string[] {
  const path = join(folder, `${String((files += 1))}.json`);
  writeFileSync(path, typeof text === "string" ? text : JSON.stringify(text));
  return ["--config", path];
}

const answersOf = (settings: Settings) => new StaticAnswers(settings, () => STATIC_FILE);
const flags = (...argv: string[]): Settings => ({ argv, env: {} });
const variables = (env: Record<string, string>): Settings => ({ argv: [], env });

/** Compares each answer of the proxy with the server's. Returns the number of answers given without a daemon. */
async function compareAnswers(settings: Settings, lines: readonly string[]): Promise<number> {
  const server = inProcessServer(settings).connect();
  const proxy = answersOf(settings);
  let answered = 0;
  for (const each of lines) {
    const answer = proxy.answerTo(each);
    if ((JSON.parse(each) as { id?: unknown }).id === undefined) {
      server.tell(each);
      continue;
    }
    const given = await server.ask(each);
    expect(answer?.line ?? given).toBe(given);
    if (answer) answered += 1;
  }
  server.close();
  return answered;
}

/** Toolsets, in all combinations with a tool. */
const TOOLSETS = ["agent", "query", "chat", "configure"];
const subsets = Array.from({ length: 15 }, (_, at) => TOOLSETS.filter((_name, bit) => ((at + 1) >> bit) & 1));

/** Settings that change answers, with the number of answers without a daemon for a legacy and a modern client. */
const SETTINGS: [string, Settings, [number, number]][] = [
  ["no settings", flags(), [7, 5]],
  ...subsets.map((each): [string, Settings, [number, number]] => {
    const hasLogs = each.join() !== "configure";
    const hasPrompts = each.includes("agent");
    return [`toolsets ${each.join()}`, flags("--toolsets", each.join()), [5 + +hasLogs + +hasPrompts, 4 + +hasPrompts]];
  }),
  ["all toolsets", flags("--toolsets=all"), [7, 5]],
  ["toolsets of a variable", variables({ CLAUDE_CODE_MCP_TOOLSETS: "query;chat" }), [6, 4]],
  ["toolsets of a file", flags(...file({ toolsets: ["configure", "agent"] })), [7, 5]],
  ["a flag over a variable", { argv: ["--toolsets", "agent"], env: { CLAUDE_CODE_MCP_TOOLSETS: "query" } }, [7, 5]],
  ["query switched off", flags("--toolsets", "agent,query", "--query", '{"enabled":false}'), [7, 5]],
  ["disk resume", flags("--allow-disk-resume"), [7, 5]],
  ["disk resume by a variable", variables({ CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: "1" }), [7, 5]],
  ["a longest wait", flags("--toolsets", "all", "--max-wait-ms", "120000"), [7, 5]],
  ["a longest wait and disk resume", flags("--max-wait-ms=1000", "--allow-disk-resume=true"), [7, 5]],
  [
    "defaults of queries",
    {
      argv: ["--toolsets", "all", "--query", '{"model":"haiku","allowedTools":["Bash(echo a, b)","Read"]}'],
      env: { CLAUDE_CODE_DEFAULT_MODEL: "opus", CLAUDE_CODE_MAX_TURNS: "3", CLAUDE_CODE_INCLUDE_SYSTEM_MESSAGES: "0" },
    },
    [7, 5],
  ],
  [
    "defaults of queries in a file",
    flags(...file({ toolsets: ["query"], query: { model: "haiku", maxMessages: 7, maxExecutionMs: 5_000 } })),
    [6, 4],
  ],
  [
    "settings that change no answer",
    {
      argv: ["--allow-dir", "a", "--allow-dir=/b", "--approvals", "caller,console:0", "--store", "s.db"],
      env: { CLAUDE_CODE_MCP_TRUST_DIRS: "/x:/y", CLAUDE_CODE_MCP_SPARES: "" },
    },
    [7, 5],
  ],
];

const TASKS = { "io.modelcontextprotocol/tasks": {} };

describe.each(SETTINGS)("with %s", (_, settings, [legacy, later]) => {
  it("a proxy answers a client of each era as the server does", async () => {
    for (const clientInfo of [INFO, CLAUDE_CODE]) {
      expect(await compareAnswers(settings, legacyLines({ clientInfo }))).toBe(legacy);
      for (const clientCapabilities of [{}, { extensions: TASKS }, { elicitation: {}, extensions: TASKS }]) {
        expect(await compareAnswers(settings, modernLines({ clientCapabilities, clientInfo }))).toBe(later);
      }
    }
  });
});

/** Values of a setting that a proxy checks by hand, in the form of its variable. */
function valuesOf({ byHand, reading }: TableSetting): string[] {
  if (!byHand || reading === "json") return [];
  if (reading === "boolean") return ["true", "false"];
  if (reading === "number") return [byHand.least, byHand.most].map(String);
  const {
    form,
    values = [form === undefined ? "/x" : (["auto", "a=b"].find((text) => new RegExp(form).test(text)) ?? "")],
  } = byHand;
  return [...values];
}

it("no setting that a proxy knows changes an answer unnoticed", async () => {
  const every = STATIC_FILE.settings.filter(({ key }) => key !== "config");
  const rows = every.flatMap((setting) => valuesOf(setting).map((value) => ({ key: setting.key, setting, value })));
  for (const { key, setting, value } of rows) {
    const all: Record<string, string> = { CLAUDE_CODE_MCP_TOOLSETS: "all", [setting.variable]: value };
    const answered = await compareAnswers(variables(all), [modern("server/discover"), modern("tools/list")]);
    // A client of a daemon may not give settings of the server.
    const isLeft = setting.of === "server" || (key === "dynamicDescription" && value === "true");
    expect({ key, value, answered }).toEqual({ key, value, answered: isLeft ? 0 : 2 });
  }
  expect(rows.length).toBeGreaterThan(60);
});

it("a proxy describes the default mode of queries as the server does, for each bound and gate", async () => {
  for (const mode of PERMISSION_MODES) {
    for (const bound of BOUNDS) {
      for (const bypass of ["--allow-bypass", "--no-allow-bypass"]) {
        const argv = [
          "--toolsets",
          "query",
          "--query",
          JSON.stringify({ permissionMode: mode }),
          "--caller-approves",
          bound,
          bypass,
        ];
        expect(await compareAnswers(flags(...argv), [modern("tools/list")])).toBe(1);
      }
    }
  }
});

it("a proxy answers every version that the SDK accepts as the server does", async () => {
  expect(STATIC_FILE.versions).toEqual(SUPPORTED_PROTOCOL_VERSIONS);
  for (const protocolVersion of STATIC_FILE.versions) {
    expect(await compareAnswers(flags(), legacyLines({ protocolVersion }))).toBe(7);
  }
});

const fields = fc.dictionary(
  fc.constantFrom("a", "form", "url", "listChanged", "applyDefaults", "list"),
  fc.jsonValue(),
  {
    maxKeys: 2,
  },
);
const someFields = fc.oneof(fields, fc.dictionary(fc.constantFrom("a", "form", "requests"), fields), fc.jsonValue());
const NAMES = ["roots", "sampling", "elicitation", "experimental", "extensions", "tasks", "other"];
const capabilities = fc.dictionary(fc.constantFrom(...NAMES), someFields, { maxKeys: 2 });
const info = fc.record(
  { name: fc.constant("a"), version: fc.constant("1"), title: fc.jsonValue(), icons: fc.jsonValue() },
  { requiredKeys: ["version"] },
);

it("whatever a client says of itself, a proxy answers as the server does, or leaves the answer to the server", async () => {
  const server = inProcessServer(flags());
  let answered = 0;
  const isRight = async (first: string) => {
    const answer = answersOf(flags()).answerTo(first);
    if (!answer) return;
    const connection = server.connect();
    expect(answer.line).toBe(await connection.ask(first));
    connection.close();
    answered += 1;
  };
  const said = fc.record({ capabilities, clientInfo: fc.oneof(info, fc.constant(INFO)) });
  const meta = fc.oneof(fc.constant({}), fc.dictionary(fc.constantFrom("progressToken", `${PREFIX}x`), fc.jsonValue()));
  const property = fc.asyncProperty(said, meta, async ({ capabilities: own, clientInfo }, _meta) => {
    await isRight(initialize({ capabilities: own, clientInfo, _meta }));
    await isRight(modern("server/discover", { clientCapabilities: own, clientInfo }));
  });
  await fc.assert(property, { numRuns: 300 });
  expect(answered).toBeGreaterThan(50);
});

describe("messages that a proxy leaves to its daemon", () => {
  it.each<[string, string[]]>([
    ["an unknown version", [initialize({ protocolVersion: "2099-01-01" })]],
    ["a client without a name", [initialize({ clientInfo: {} })]],
    ["a second initialize", [initialize(), initialize()]],
    ["an initialize behind another message", [line({ id: 1, method: "ping" }), initialize()]],
    ["an initialize behind a list of the later era", [modern("tools/list"), initialize()]],
    ["a list before initialize", [line({ id: 1, method: "tools/list" })]],
    ["notifications/initialized without initialize", [line({ method: "notifications/initialized" })]],
    ["a discover of the earlier era", [initialize(), line({ id: 2, method: "server/discover" })]],
    ["a request of the later era behind initialize", [initialize(), modern("tools/list")]],
    ["a page of a list", [initialize(), line({ id: 2, method: "tools/list", params: { cursor: "x" } })]],
    ["an invalid level", [initialize(), line({ id: 2, method: "logging/setLevel", params: { level: "x" } })]],
    ["a ping of the later era", [modern("ping")]],
    ["an unknown version of the later era", [modern("server/discover", { protocolVersion: "2099-01-01" })]],
    ["an invalid level of the later era", [modern("tools/list", { logLevel: "x" })]],
    ["a call", [initialize(), line({ id: 2, method: "tools/call", params: { name: "claude_code" } })]],
    ["another notification", [initialize(), line({ method: "notifications/cancelled", params: { requestId: 0 } })]],
    ["a batch", [`[${initialize()}]`]],
    ["invalid JSON", ["{"]],
    ["another JSON-RPC version", [initialize().replace("2.0", "1.0")]],
    ["an invalid id", [initialize().replace('"id":0', '"id":{}')]],
    ["a long message", [initialize({ clientInfo: { ...INFO, title: "x".repeat(20_000) } })]],
  ])("a proxy leaves %s to its daemon", (_, lines) => {
    const proxy = answersOf(flags());
    expect(lines.map((each) => proxy.answerTo(each)).at(-1)).toBeUndefined();
  });

  it("a proxy leaves everything to its daemon if the build has written no answers", () => {
    expect(new StaticAnswers(flags(), () => undefined).answerTo(initialize())).toBeUndefined();
  });
});
