import type { JsonObject } from "../../domain/json.ts";

/** The result of a handler that cannot continue before a form at the client is submitted. */
export interface NeedsInput {
  /** By a key that the answer comes back under. */
  readonly requests: Readonly<Record<string, Form>>;
  /** Comes back with the call, as `resumeState`. */
  readonly state: JsonObject;
  /** The session that it is about. */
  readonly sessionId: string;
  /** If the form is shown while the call runs: how long to wait for it, ms. */
  readonly withinMs: number;
  /** Resolves when the answer is no longer needed, or when the signal aborts. */
  readonly settled: (signal: AbortSignal) => Promise<void>;
}

/** A form as every client can show it: flat, of texts and choices. */
export interface Form {
  readonly message: string;
  readonly schema: {
    readonly type: "object";
    readonly properties: Readonly<Record<string, FormField>>;
    readonly required: string[];
  };
}

export type FormField = Choice | SeveralChoices | FreeText;

interface Field {
  readonly title: string;
  readonly description?: string;
}
/** `enumNames` because clients of every revision know it. */
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

/** `none`: no answer came in time. Form content is as the client sent it. */
export type FormAnswer =
  | { readonly action: "accept"; readonly content: JsonObject }
  | { readonly action: "decline" | "cancel" }
  | { readonly action: "none" };
