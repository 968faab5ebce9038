import type { CommandOf } from "../../domain/command.ts";
import type { ControlRequest } from "../../domain/control.ts";
import type { JsonObject } from "../../domain/json.ts";
import { PermissionMode } from "../../domain/permission.ts";
import { accept, emit, refuse, type Draft, type Input } from "./draft.ts";
import { suspend } from "./suspend.ts";
import { restartIdleClock } from "./time.ts";
import { endProcess, startProcess } from "./starting.ts";

/**
 * Hands a request for Claude Code itself to the process, and replies in `onControlled`. A request that only concerns the next
 * process is carried out here.
 */
export function onControl(draft: Draft, command: CommandOf<"control">): void {
  const { effects, state } = draft;
  const { by, request } = command.data;
  if (request.do === "suspend") return suspend(draft, command, request);
  if (state.closed) return refuse(draft, command, "CANCELLED", `The session was ${state.closed.reason}.`);
  if (request.do === "configure" && !needsProcess(draft, request)) return configureNext(draft, command, request);
  const { phase } = state.process;
  if (phase === "ending") {
    return refuse(draft, command, "SESSION_BUSY", "Claude Code is being stopped. Try again in a moment.");
  }
  if (phase === "none") {
    if (request.do !== "rewind" && request.do !== "usage") {
      const problem = "No process runs in the session; its background tasks ended with the last one.";
      return refuse(draft, command, "INVALID_ARGUMENT", problem);
    }
    startProcess(draft, { rerun: false, environmentId: command.data.environmentId });
    restartIdleClock(draft);
  }
  effects.push({ type: "control", commandId: command.id, by, request });
}

/**
 * False if only a new process can take the request: without a process, and for `bypassPermissions`, which cannot be switched on
 * in a process started without it.
 */
function needsProcess({ state: { process } }: Draft, request: ConfigureRequest): boolean {
  const isUp = process.phase === "starting" || process.phase === "live";
  return isUp && request.permissionMode !== "bypassPermissions";
}

type ConfigureRequest = Extract<ControlRequest, { do: "configure" }>;

function configureNext(draft: Draft, command: CommandOf<"control">, request: ConfigureRequest): void {
  const { state } = draft;
  const cursor = state.lastEventId + 1;
  if (state.turn) {
    const advice = "Interrupt the turn or wait for its end.";
    return refuse(draft, command, "SESSION_BUSY", `This cannot be switched while a turn runs. ${advice}`);
  }
  if (draft.policy.ephemeral && state.process.phase !== "none") {
    const problem =
      "This requires a new process, for which the session keeps no transcript (persistSession: false). Start a new session.";
    return refuse(draft, command, "INVALID_ARGUMENT", problem);
  }
  // The next prompt resumes the session in a process with the new settings.
  endProcess(draft);
  choose(draft, command.data.by, request);
  accept(draft, command, cursor, {});
}

function choose(draft: Draft, by: string, { model, permissionMode }: ConfigureRequest): void {
  const chosen = { ...(model !== undefined && { model }), ...(permissionMode !== undefined && { permissionMode }) };
  Object.assign(draft.state.chosen, chosen);
  emit(draft, { type: "session.configured", data: { ...chosen, by } });
}

/**
 * Returns the mode that Claude Code has switched to, possibly not the requested mode. Ignores `bypassPermissions`, so that no
 * reply of Claude Code opens the bypass gate.
 */
function modeInEffect({ permissionMode }: JsonObject): Pick<ConfigureRequest, "permissionMode"> {
  const mode = PermissionMode.safeParse(permissionMode);
  return mode.success && mode.data !== "bypassPermissions" ? { permissionMode: mode.data } : {};
}

export function onControlled(draft: Draft, input: Extract<Input, { type: "controlled" }>): void {
  const { by, commandId: id, outcome, request } = input;
  const cursor = draft.state.lastEventId + 1;
  if (!outcome.ok) return refuse(draft, { id }, outcome.refusal.code, outcome.refusal.message);
  if (!draft.state.closed) {
    if (request.do === "configure") choose(draft, by, { ...request, ...modeInEffect(outcome.data) });
    if (request.do === "rewind" && !request.dryRun) {
      const message = `Files were restored to their state before prompt ${request.promptId}, by ${by}.`;
      emit(draft, { type: "notice", data: { kind: "rewind", message, details: outcome.data } });
    }
  }
  accept(draft, { id }, cursor, outcome.data);
}
