import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type ListResourcesResult,
  type ListResourceTemplatesResult,
  type ReadResourceResult,
  type Result,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Caller } from "../../domain/principal.ts";
import { events } from "../../engine/actions/reading.ts";
import { requireScope } from "../../engine/actions/scope.ts";
import type { Logger } from "../../engine/ports.ts";
import type { ToolDeps } from "../../tools/define.ts";
import { asAppError, type ReportFault } from "../../tools/errors.ts";
import type { ToolName } from "../../tools/tool-names.ts";
import { limitsOf, type ClientFacts } from "../tool-call.ts";
import { callerOf } from "../caller.ts";
import { resourceError } from "../protocol-errors.ts";
import { readField } from "../unanswered-requests.ts";
import type { Subscriptions } from "../watch/subscriptions.ts";
import { findResource, type FoundResource, type Library, type ReadingCaller } from "./resource.ts";
import { describeSkill } from "./skill.ts";

interface ResourceOptions {
  readonly limits: { readonly maxWaitMs?: number | undefined };
  readonly toolNames: readonly ToolName[];
  /** Resolved by the first read that needs the engine, because listing resources must not wait for the engine. */
  readonly deps: () => Promise<ToolDeps>;
  readonly log: Pick<Logger, "error">;
}

interface ResourceAnswers {
  list(context: ServerContext): ListResourcesResult;
  listTemplates(context: ServerContext): ListResourceTemplatesResult;
  read(params: { uri: string }, context: ServerContext): Promise<ReadResourceResult>;
  listSkills(context: ServerContext): Result;
  getSkill(params: unknown, context: ServerContext): Promise<Result>;
}

/** Required in results that may be cached. The SDK adds both only to results of its own methods. */
const UNCACHED = { ttlMs: 0, cacheScope: "private" };

/** Scope required for all resources. */
const READ_SCOPE = events.scope;

/** Answers requests for resources. */
export function resourceAnswers(
  library: Library,
  saidByClient: () => Pick<ClientFacts, "clientInfo">,
  options: ResourceOptions,
): ResourceAnswers {
  const { documents, pages } = library;
  const mayRead = (context: ServerContext) => callerOf(context).scopes.includes(READ_SCOPE);
  return {
    list: (context) => ({
      resources: (mayRead(context) ? pages : []).map(({ uri, name, title, description, mimeType }) => ({
        uri,
        name,
        title,
        description,
        mimeType,
      })),
    }),
    listTemplates: (context) => ({
      resourceTemplates: (mayRead(context) ? documents : []).map(
        ({ uriTemplate, name, title, description, mimeType }) => ({
          uriTemplate,
          name,
          title,
          description,
          mimeType,
        }),
      ),
    }),
    read: async ({ uri }, context) => {
      const caller = callerOf(context);
      await requireReading(uri, caller, options);
      const found = findResource(library, uri);
      if (!found) throw new ResourceNotFoundError(uri.slice(0, URI_SHOWN), unknownResourceText(uri, library));
      if ("page" in found) {
        const limits = limitsOf(context, saidByClient(), options);
        const text = await found.page.text(limits, caller, options.deps);
        return { contents: [{ uri: found.page.uri, mimeType: found.page.mimeType, text }] };
      }
      return readDocument(uri, found, { ...caller, signal: context.mcpReq.signal }, options);
    },
    listSkills: (context) => ({ skills: mayRead(context) ? [describeSkill()] : [], ...UNCACHED }),
    getSkill: async (params, context) => {
      const asked = readField(params, "uri");
      const uri = typeof asked === "string" ? asked.slice(0, URI_SHOWN) : "";
      await requireReading(uri, callerOf(context), options);
      const skill = describeSkill();
      if (uri === skill.uri) return { skill, ...UNCACHED };
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `No skill is served at ${uri}. There is: ${skill.uri}.`);
    },
  };
}

/** Subscribes a client of the 2025 era. Throws the protocol error for a client that may not follow `uri`. */
export async function subscribe(
  uri: string,
  context: ServerContext,
  subscriptions: Subscriptions,
  { log, toolNames }: Pick<ResourceOptions, "log" | "toolNames">,
): Promise<void> {
  try {
    // Repeated subscriptions count once.
    if (!subscriptions.has(uri)) await subscriptions.add(uri, callerOf(context));
  } catch (error) {
    const report: ReportFault = (fault, cause) => log.error("a resource cannot be followed", { fault, error: cause });
    throw resourceError(uri.slice(0, URI_SHOWN), asAppError(error, report, toolNames));
  }
}

/** Requires `READ_SCOPE` before looking for the resource. Audits a refusal, as tools do. */
async function requireReading(uri: string, caller: Caller, { deps }: ResourceOptions): Promise<void> {
  try {
    requireScope(caller, READ_SCOPE, "Reading resources");
  } catch (error) {
    const { audit } = await deps();
    audit?.({ principal: caller.principal, tool: "resources/read", outcome: "PERMISSION_DENIED" });
    throw resourceError(
      uri,
      asAppError(error, () => undefined),
    );
  }
}

async function readDocument(
  uri: string,
  found: Exclude<FoundResource, { page: unknown }>,
  reading: ReadingCaller,
  options: ResourceOptions,
): Promise<ReadResourceResult> {
  const { document, query, sessionId } = found;
  try {
    const deps = await options.deps();
    const narrowed = { ...deps, engine: deps.engine.forCaller(reading) };
    const text = await document.read(sessionId, query, reading, narrowed);
    return { contents: [{ uri, mimeType: document.mimeType, text }] };
  } catch (error) {
    const { log, toolNames } = options;
    const report: ReportFault = (fault, cause) => log.error("a resource failed", { fault, uri, error: cause });
    throw resourceError(uri, asAppError(error, report, toolNames));
  }
}

/** Maximum length of a URI in an error, characters. No valid URI of this server is longer. */
const URI_SHOWN = 1_000;

function unknownResourceText(uri: string, { documents, pages }: Library): string {
  const known = [...pages.map((page) => page.uri), ...documents.map(({ uriTemplate }) => uriTemplate)];
  return `There is no resource ${uri.slice(0, 200)}. There are: ${known.join(", ")}.`;
}
