import type { Caller } from "../../domain/principal.ts";
import type { ToolLimits } from "../../tools/arguments/wait-limits.ts";
import type { ToolDeps } from "../../tools/define.ts";

/** Resources that a model can read besides calling tools: pages, and sessions as documents. Independent of the protocol. */

export interface ResourceInfo {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly mimeType: string;
}

/** Text that is the same for all sessions. Only a text that depends on the caller waits for the engine. */
export interface Page extends ResourceInfo {
  readonly uri: string;
  text(limits: ToolLimits, caller: Caller, deps: () => Promise<ToolDeps>): string | Promise<string>;
}

export interface ReadingCaller extends Caller {
  readonly signal: AbortSignal;
}

/** Document that exists for each session. */
export interface SessionDocument extends ResourceInfo {
  /** URI template by RFC 6570, as listed. */
  readonly uriTemplate: string;
  /** Part of the URI after the session's id. */
  readonly path: string;
  /** Throws `AppError`. */
  read(sessionId: string, query: URLSearchParams, reading: ReadingCaller, deps: ToolDeps): Promise<string>;
}

export interface Library {
  readonly pages: readonly Page[];
  readonly documents: readonly SessionDocument[];
}

export type FoundResource =
  | { readonly page: Page }
  | { readonly document: SessionDocument; readonly sessionId: string; readonly query: URLSearchParams };

/** Returns the page or document at `uri`; `undefined` if there is none. The folder of a skill has one file, which is returned. */
export function findResource({ pages, documents }: Library, uri: string): FoundResource | undefined {
  const page = pages.find((each) => each.uri === uri || each.uri === `${uri}/SKILL.md`);
  if (page) return { page };
  const [, sessionId, path, query] = SESSION_URI.exec(uri) ?? [];
  const document = documents.find((each) => each.path === path);
  if (sessionId === undefined || !document) return undefined;
  return { document, sessionId, query: new URLSearchParams(query) };
}

const SESSION_URI = /^claude-code:\/\/sessions\/([\w.-]{1,200})([^?#]*)(?:\?([^#]*))?$/;
