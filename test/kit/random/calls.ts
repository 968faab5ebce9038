import fc, { type Arbitrary } from "fast-check";
import { z } from "zod";

import { PermissionUpdate } from "../../../src/domain/permission.ts";
import { SessionOptions } from "../../../src/domain/options.ts";
import { AttachmentSource } from "../../../src/domain/prompt.ts";
import { PollOptions } from "../../../src/tools/check/request.ts";
import { ending, odd, oddText, spoilt, valid, type Schema } from "./values.ts";

/** Random calls, as any client might send them: valid, nearly valid and invalid. */

export const CALLERS = ["operator", "confined", "reader"] as const;
export type CallerName = (typeof CALLERS)[number];
export type Era = "modern" | "legacy";

export interface Call {
  readonly caller: CallerName;
  readonly era: Era;
  /** Body as JSON, or as text that may be invalid JSON. */
  readonly body: { readonly json: unknown } | { readonly text: string };
  /** Headers in place of those that a client of `era` sends; `undefined` omits a header. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly verb: string;
}

export interface ListedTool {
  readonly name: string;
  readonly inputSchema: Schema;
}

const schemaOf = (type: z.ZodType): Schema => z.toJSONSchema(type, { io: "input", unrepresentable: "any" }) as Schema;

const OPTIONS = schemaOf(SessionOptions);
const without = ({ properties = {}, ...schema }: Schema, ...left: string[]): Schema => ({
  ...schema,
  required: [],
  properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !left.includes(name))),
});
const list = (items: Schema): Schema => ({ type: "array", items });
const WHERE: Schema = { type: "object", properties: { sessionId: { type: "string" }, cursor: { type: "integer" } } };

/**
 * Schemas of parameters that the tool listing leaves to the options reference (generated from the same schemas) and the docs.
 */
const UNTOLD: Readonly<Record<string, Schema>> = {
  advanced: without(OPTIONS, "cwd"),
  diskResumeConfig: without(OPTIONS),
  attachments: list(schemaOf(AttachmentSource)),
  sessions: list(WHERE),
  pollOptions: schemaOf(PollOptions),
  permissionOptions: {
    type: "object",
    properties: { updatedInput: { type: "object" }, updatedPermissions: list(schemaOf(PermissionUpdate)) },
  },
};

function whole({ name, inputSchema }: ListedTool): Schema {
  const unlisted: Schema = name.startsWith("claude_code") ? without(OPTIONS, "permissionMode", "model") : {};
  const listed = Object.entries(inputSchema.properties ?? {});
  const paging = name === "claude_code_check" ? { offset: { type: "integer" }, limit: { type: "integer" } } : {};
  const known = Object.fromEntries(listed.map(([field, schema]) => [field, UNTOLD[field] ?? schema]));
  const flat = name === "claude_code" || name === "claude_code_reply" ? unlisted.properties : {};
  return { ...inputSchema, properties: { ...flat, ...paging, ...known } };
}

interface Asked {
  readonly method: unknown;
  readonly params: unknown;
}

const ENDING = new Set(["claude_session_close", "claude_chat_interrupt"]);
/** Weights: tools with more code are called more often. */
const WEIGHTS: Readonly<Record<string, number>> = { claude_code_check: 12, claude_code_session: 9, claude_code: 3 };

function toolCall(tools: readonly ListedTool[]): Arbitrary<Asked> {
  const of = (tool: ListedTool): Arbitrary<Asked> => {
    const right = valid(ENDING.has(tool.name) ? ending(whole(tool)) : whole(tool));
    const args = fc.oneof(
      { weight: 7, arbitrary: right },
      { weight: 5, arbitrary: spoilt(right) },
      { weight: 1, arbitrary: odd },
    );
    return args.map((each) => ({ method: "tools/call", params: { name: tool.name, arguments: each } }));
  };
  const unknown = fc.record({ name: oddText, arguments: odd }).map((params) => ({ method: "tools/call", params }));
  return fc.oneof(...tools.map((tool) => ({ weight: WEIGHTS[tool.name] ?? 1, arbitrary: of(tool) })), {
    weight: 1,
    arbitrary: unknown,
  });
}

const SCHEMES = [
  "claude-code://sessions/",
  "claude-code://",
  "CLAUDE-CODE://sessions/",
  "claude-code:/sessions/",
  "file://",
  "",
];
const BEHIND = ["", "/events", "/events/", "/events/../..", "/transcript", "#x", "/%65vents", "?cursor=1"];

/** Reads of existing resources, and of URIs similar to theirs. */
const resourceCall: Arbitrary<Asked> = fc
  .oneof(
    {
      weight: 2,
      arbitrary: fc
        .constantFrom("quickstart", "options", "errors", "permissions", "«idle»")
        .map((page) => `claude-code://${page}`),
    },
    {
      weight: 6,
      arbitrary: fc
        .tuple(
          fc.oneof({ weight: 4, arbitrary: fc.constant("claude-code://sessions/") }, fc.constantFrom(...SCHEMES)),
          fc.oneof({ weight: 4, arbitrary: fc.constantFrom("«asking»", "«idle»", "«closed»", "«theirs»") }, oddText),
          fc.constantFrom(...BEHIND),
          fc.oneof(
            fc.constant(""),
            fc.webQueryParameters().map((each) => `?${each}`),
            query(),
          ),
        )
        .map((parts) => parts.join("")),
    },
    odd,
  )
  .map((uri) => ({ method: "resources/read", params: { uri } }));

function query(): Arbitrary<string> {
  const amount = fc.oneof(fc.integer(), fc.constantFrom("1e3", "0", "9007199254740993", "-1", "", "%31", "∞"));
  return fc.tuple(amount, amount).map(([cursor, limit]) => `?cursor=${String(cursor)}&limit=${String(limit)}`);
}

const METHODS = [
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "ping",
  "server/discover",
  "initialize",
  "prompts/list",
  "prompts/get",
  "completion/complete",
  "logging/setLevel",
  "resources/subscribe",
  "tasks/get",
  "notifications/initialized",
  "notifications/roots/list_changed",
  "sampling/createMessage",
  "rpc.discover",
];

const otherCall: Arbitrary<Asked> = fc.record({
  method: fc.oneof({ weight: 5, arbitrary: fc.constantFrom<unknown>(...METHODS) }, odd),
  params: fc.oneof(fc.constant({}), fc.constant(undefined), fc.record({ level: oddText, cursor: odd }), odd),
});

/** Fields that each request of the 2026 era has; in the older era, `initialize` sends them once. */
const MODERN = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "anybody", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
};

function messageOf(
  { method, params }: Asked,
  era: Era,
): { jsonrpc: string; id: string; method: unknown; params?: unknown } {
  const isObject = typeof params === "object" && params !== null && !Array.isArray(params);
  const meta = era === "modern" && isObject ? { ...params, _meta: MODERN } : params;
  return { jsonrpc: "2.0", id: "«id»", method, ...(meta !== undefined && { params: meta }) };
}

/** Text that fits into a header. */
const headerText = fc.oneof(
  fc.constantFrom("", "null", "2025-06-18", "2024-10-07", "2026-07-28", "1999-01-01", "*/*", "application/json"),
  fc.constantFrom("«session»", "«theirSession»", "00000000-0000-4000-8000-000000000000", "tools/call", "claude_code"),
  fc.string({ unit: fc.integer({ min: 33, max: 126 }).map((code) => String.fromCodePoint(code)), maxLength: 60 }),
);
const HEADERS = [
  "mcp-session-id",
  "mcp-session-id",
  "mcp-protocol-version",
  "mcp-protocol-version",
  "mcp-method",
  "mcp-name",
  "accept",
  "content-type",
  "content-encoding",
  "last-event-id",
  "origin",
  "host",
  "authorization",
  "x-forwarded-for",
  "forwarded",
  "traceparent",
  "x-anything",
];
const headers = fc
  .array(fc.tuple(fc.constantFrom(...HEADERS), fc.option(headerText, { nil: undefined })), {
    minLength: 1,
    maxLength: 3,
  })
  .map((all) => Object.fromEntries(all));

/** Requests that no client would send: messages changed at random, in batches, or cut off. */
function rawCall(asked: Arbitrary<Asked>): Arbitrary<Omit<Call, "caller">> {
  return fc.tuple(asked, fc.constantFrom<Era>("modern", "legacy")).chain(([each, era]) => {
    const message = messageOf(each, era);
    const text = JSON.stringify(message);
    const body: Arbitrary<Call["body"]> = fc.oneof(
      { weight: 4, arbitrary: spoilt(fc.constant(message)).map((json) => ({ json })) },
      { weight: 1, arbitrary: odd.map((id) => ({ json: { ...message, id } })) },
      {
        weight: 1,
        arbitrary: fc.array(fc.oneof(fc.constant(message), odd), { maxLength: 4 }).map((json) => ({ json })),
      },
      { weight: 1, arbitrary: fc.nat(text.length).map((end) => ({ text: text.slice(0, end) })) },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom("id", "method", "jsonrpc")
          .map((name) => ({ text: text.replace("{", `{"${name}":null,`) })),
      },
      {
        weight: 1,
        arbitrary: fc.oneof(
          odd.map((json) => ({ json })),
          oddText.map((other) => ({ text: other })),
        ),
      },
      { weight: 3, arbitrary: fc.constant({ json: message }) },
    );
    return fc.record({
      era: fc.constant(era),
      body,
      headers: fc.oneof(fc.constant({}), headers),
      verb: fc.oneof(
        { weight: 12, arbitrary: fc.constant("POST") },
        fc.constantFrom("GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"),
      ),
    });
  });
}

/** Generates any call to a server that lists `tools`. */
export function anyCall(tools: readonly ListedTool[]): Arbitrary<Call> {
  const asked = fc.oneof(
    { weight: 12, arbitrary: toolCall(tools) },
    { weight: 3, arbitrary: resourceCall },
    { weight: 1, arbitrary: otherCall },
  );
  const plain = fc.tuple(asked, fc.constantFrom<Era>("modern", "legacy")).map(([each, era]) => {
    return { era, body: { json: messageOf(each, era) }, headers: {}, verb: "POST" };
  });
  const caller = fc.constantFrom(...CALLERS, "operator", "confined");
  const rest = fc.oneof({ weight: 4, arbitrary: plain }, { weight: 1, arbitrary: rawCall(asked) });
  return fc.tuple(caller, rest).map(([who, call]) => ({ caller: who, ...call }));
}
