import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import type { WaitUntil } from "../../engine/api.ts";
import type { ToolLimits } from "../arguments/wait-limits.ts";
import type { ResponseMode } from "../../view/event.ts";
import type { ListForm, Include } from "../../view/event-list.ts";
import { waitWithin } from "../waiting.ts";

/** Parameters of a poll, or of the wait after an answer to a request. */

export interface CheckRequest {
  readonly form: ListForm;
  readonly waitMs: number;
  readonly until: WaitUntil;
  readonly maxEvents: number;
  readonly maxBytes: number;
}

const WAIT_MS = 20_000;
export const MAX_EVENTS = 200;
export const MAX_BYTES = 32_768;
export const MaxBytes = z.int().min(2_048).max(1_048_576);

const OptionalBoolean = z.boolean().exactOptional();

export const PollOptions = z.strictObject({
  includeTools: OptionalBoolean,
  includeEvents: OptionalBoolean,
  includeActions: OptionalBoolean,
  includeResult: OptionalBoolean,
  includeUsage: OptionalBoolean,
  includeModelUsage: OptionalBoolean,
  includeStructuredOutput: OptionalBoolean,
  includeTerminalEvents: OptionalBoolean,
  includeProgressEvents: OptionalBoolean,
  maxBytes: MaxBytes.exactOptional(),
});
type PollOptions = z.infer<typeof PollOptions>;

interface CheckArguments {
  readonly waitMs?: number;
  readonly until?: WaitUntil;
  readonly maxEvents?: number;
  readonly maxBytes?: number;
  readonly responseMode?: ResponseMode;
  readonly pollOptions?: PollOptions;
}

export function readRequest(args: CheckArguments, limits: ToolLimits): CheckRequest {
  const { maxBytes, maxEvents, pollOptions: options = {}, responseMode: mode = "minimal", until, waitMs } = args;
  if (maxBytes !== undefined && options.maxBytes !== undefined && maxBytes !== options.maxBytes) {
    throw invalidArgument("pollOptions.maxBytes", "differs from maxBytes, which is given too. Give it once.");
  }
  return {
    form: { mode, include: readInclude(options, mode) },
    // A wait for any event goes on although no turn runs, so that wait stays short.
    waitMs: waitWithin(waitMs, WAIT_MS, until === "event" ? { ...limits, waitsByDefault: false } : limits),
    until: until ?? "news",
    maxEvents: maxEvents ?? MAX_EVENTS,
    maxBytes: maxBytes ?? options.maxBytes ?? MAX_BYTES,
  };
}

/** In minimal mode, counts are shown only on request: a kilobyte of little use to a model. */
function readInclude(options: PollOptions, mode: ResponseMode): Include {
  const isMinimal = mode === "minimal";
  return {
    tools: options.includeTools ?? false,
    events: options.includeEvents ?? true,
    actions: options.includeActions ?? true,
    result: options.includeResult ?? true,
    usage: options.includeUsage ?? (isMinimal ? "short" : true),
    modelUsage: options.includeModelUsage ?? !isMinimal,
    structuredOutput: options.includeStructuredOutput ?? true,
    terminalEvents: options.includeTerminalEvents ?? true,
    progressEvents: options.includeProgressEvents ?? true,
  };
}
