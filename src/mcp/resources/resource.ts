import type { Caller } from "../../domain/principal.ts";
import type { ToolDeps, ToolLimits } from "../../tools/define.ts";

/** What a model may read beside calling tools: pages that explain, and sessions as documents. No protocol in here. */

export interface Described {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly mimeType: string;
}

/** A text that is the same for all callers. It is made without the engine. */
export interface Page extends Described {
  readonly uri: string;
  text(limits: ToolLimits): string;
}

export interface Reading extends Caller {
  readonly signal: AbortSignal;
}

/** One document for each session. */
export interface SessionDocument extends Described {
  /** RFC 6570, as it is advertised. */
  readonly uriTemplate: string;
  /** What stands behind the id in the path of a URI. */
  readonly path: string;
  /** Throws AppError. */
  read(sessionId: string, query: URLSearchParams, reading: Reading, deps: ToolDeps): Promise<string>;
}

export interface Library {
  readonly pages: readonly Page[];
  readonly documents: readonly SessionDocument[];
}

export type Found =
  | { readonly page: Page }
  | { readonly document: SessionDocument; readonly sessionId: string; readonly query: URLSearchParams };

/** What a URI names; undefined for what is not there. */
export function find({ pages, documents }: Library, uri: string): Found | undefined {
  const page = pages.find((each) => each.uri === uri);
  if (page) return { page };
  const [, sessionId, path, query] = SESSION_URI.exec(uri) ?? [];
  const document = documents.find((each) => each.path === path);
  if (sessionId === undefined || !document) return undefined;
  return { document, sessionId, query: new URLSearchParams(query) };
}

const SESSION_URI = /^claude-code:\/\/sessions\/([\w.-]{1,200})([^?#]*)(?:\?([^#]*))?$/;
