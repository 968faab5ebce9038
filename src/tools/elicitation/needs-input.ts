import type { JsonObject } from "../../domain/json.ts";
import type { Caller } from "../../domain/principal.ts";

/** Result of a handler that has to show a form before it can continue. */
export interface NeedsInput {
  /** Forms and links by key. The answer to a form has its key. */
  readonly requests: Readonly<Record<string, Form | RequestLink>>;
  /** Sent back by the client as `resumeState`. */
  readonly state: JsonObject;
  /** Session of the request. */
  readonly sessionId: string;
  /** Time limit of a form shown while the call runs, ms. */
  readonly withinMs: number;
  /** Resolves when the answer is no longer needed or the signal aborts. */
  readonly settled: (signal: AbortSignal) => Promise<void>;
}

/** Form for every client: flat, with texts and choices only. */
export interface Form {
  readonly message: string;
  readonly schema: {
    readonly type: "object";
    readonly properties: Readonly<Record<string, FormField>>;
    readonly required: string[];
  };
  /** Message of a link in place of the form. Set if the form leaves out a part of the request. */
  readonly pageMessage?: string;
}

/** Link to a page with the whole request, in place of a form. Opening the page is not an answer. */
export interface RequestLink {
  readonly message: string;
  readonly url: string;
}

/** Request of a session. */
export interface LinkedRequest {
  readonly sessionId: string;
  readonly requestId: string;
}

/** Single-use links to pages that show one request and take its answer (`src/console/request-links.ts`). */
export interface RequestLinks {
  /** Returns the URL of an unused link for `caller`, whose rights limit the answer. */
  urlFor(caller: Caller, which: LinkedRequest): string;
  /** Call when the user at the client has agreed to open the page. */
  noteAccepted(which: LinkedRequest): void;
  /** True if a page shows the request, or is expected to show it soon. */
  isOpen(which: LinkedRequest): boolean;
}

export type FormField = Choice | SeveralChoices | FreeText;

interface Field {
  readonly title: string;
  readonly description?: string;
}
/** Uses `enumNames` because clients of every protocol revision know it. */
interface Choice extends Field {
  readonly type: "string";
  readonly enum: string[];
  readonly enumNames?: string[];
}
interface SeveralChoices extends Field {
  readonly type: "array";
  readonly items: { readonly type: "string"; readonly enum: string[] };
}
interface FreeText extends Field {
  readonly type: "string";
  readonly maxLength: number;
}

/** `none`: no answer came in time. `content` is unchecked input from the client. */
export type FormAnswer =
  | { readonly action: "accept"; readonly content: JsonObject }
  | { readonly action: "decline" | "cancel" }
  | { readonly action: "none" };
