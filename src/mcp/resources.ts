import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type ListResourcesResult,
  type ListResourceTemplatesResult,
  type ReadResourceResult,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { AppError } from "../domain/error.ts";
import type { Caller, Scope } from "../domain/principal.ts";
import type { Logger } from "../engine/ports.ts";
import type { ToolDeps, ToolLimits } from "../tools/define.ts";
import { asAppError } from "../tools/errors.ts";
import { requireScope } from "../tools/scope.ts";
import { callerOf } from "./caller.ts";
import { find, type Found, type Library, type Reading } from "../tools/resources/define.ts";

interface ResourceOptions {
  readonly limits: ToolLimits;
  /** Resolved by the first read that needs what runs sessions. */
  readonly deps: () => Promise<ToolDeps>;
  readonly log: Pick<Logger, "error">;
}

interface ResourceAnswers {
  list(context: ServerContext): ListResourcesResult;
  listTemplates(context: ServerContext): ListResourceTemplatesResult;
  read(params: { uri: string }, context: ServerContext): Promise<ReadResourceResult>;
}

/** What a caller needs for any of it. */
const SCOPE: Scope = "read";

/** Answers for what can be read. */
export function resourceAnswers(library: Library, options: ResourceOptions): ResourceAnswers {
  const { documents, pages } = library;
  const mayRead = (context: ServerContext) => callerOf(context).scopes.includes(SCOPE);
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
      const found = find(library, uri);
      if (!found) throw new ResourceNotFoundError(uri.slice(0, URI_SHOWN), nothingAt(uri, library));
      return read(uri, found, { ...caller, signal: context.mcpReq.signal }, options);
    },
  };
}

/** Before it is even looked whether there is such a thing. Who was refused is taken down, like with a tool. */
async function requireReading(uri: string, caller: Caller, { deps }: ResourceOptions): Promise<void> {
  try {
    requireScope(caller, SCOPE, "Reading resources");
  } catch (error) {
    const { audit } = await deps();
    audit?.({ principal: caller.principal, tool: "resources/read", outcome: "PERMISSION_DENIED" });
    throw refusal(
      uri,
      asAppError(error, () => undefined),
    );
  }
}

async function read(
  uri: string,
  found: Found,
  reading: Reading,
  options: ResourceOptions,
): Promise<ReadResourceResult> {
  if ("page" in found) {
    const { mimeType } = found.page;
    return { contents: [{ uri, mimeType, text: found.page.text(options.limits) }] };
  }
  const { document, query, sessionId } = found;
  try {
    const text = await document.read(sessionId, query, reading, await options.deps());
    return { contents: [{ uri, mimeType: document.mimeType, text }] };
  } catch (error) {
    const { log } = options;
    throw refusal(
      uri,
      asAppError(error, (fault, cause) => log.error("a resource failed", { fault, uri, error: cause })),
    );
  }
}

function refusal(uri: string, { code, message }: AppError): ProtocolError {
  const text = `Error [${code}]: ${message}`;
  if (code === "SESSION_NOT_FOUND") return new ResourceNotFoundError(uri, text);
  const isOurs = code === "INTERNAL" || code === "TIMEOUT";
  return new ProtocolError(isOurs ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams, text, {
    uri,
    code,
  });
}

/** No URI of ours is so long, in characters. */
const URI_SHOWN = 1_000;

function nothingAt(uri: string, { documents, pages }: Library): string {
  const there = [...pages.map((page) => page.uri), ...documents.map(({ uriTemplate }) => uriTemplate)];
  return `There is no resource ${uri.slice(0, 200)}. There are: ${there.join(", ")}.`;
}
