import type { StartBody } from "../../../src/console/wire.ts";
import { newRetryKey } from "../net/api.ts";
import { me } from "../state/me.ts";
import { perUser } from "../state/per-user.ts";

/** State of the form. `draft` keeps the state while other views are shown. */
export interface Draft {
  readonly prompt: string;
  readonly cwd: string;
  readonly model: string;
  readonly permissionMode: string;
  readonly maxTurns: string;
  readonly maxBudgetUsd: string;
  readonly onLimit: string;
  readonly priority: string;
  readonly profile: string;
  /** Idempotency key: repeated sending starts a single session. */
  readonly key: string;
}

export const draft = perUser(empty);

export function write(to: Partial<Draft>): void {
  draft.value = { ...draft.value, ...to };
}

export function clearDraft(): void {
  draft.value = empty();
}

/** Replaces the key after a 409: the server knows the key from a different request. */
export function renewKey(): void {
  write({ key: newRetryKey() });
}

/**
 * Returns the chosen mode, otherwise the default mode, because the form shows the default as chosen; "" leaves the mode to the
 * chosen profile.
 */
export function chosenMode({ permissionMode, profile }: Draft): string {
  const modes = me.value?.permissionModes ?? [];
  if (permissionMode !== "" || profile !== "") return permissionMode;
  return modes.includes("default") ? "default" : (modes[0] ?? "");
}

/** Leaves out empty fields, so that the server uses its defaults. */
export function bodyOf(written: Draft): StartBody {
  const { prompt, cwd, model, maxTurns, maxBudgetUsd, onLimit, priority, profile, key } = written;
  const permissionMode = chosenMode(written);
  return {
    prompt,
    ...(cwd.trim() !== "" && { cwd: cwd.trim() }),
    ...(model.trim() !== "" && { model: model.trim() }),
    ...(permissionMode !== "" && { permissionMode }),
    ...(maxTurns !== "" && { maxTurns: Number(maxTurns) }),
    ...(maxBudgetUsd !== "" && { maxBudgetUsd: Number(maxBudgetUsd) }),
    ...((onLimit === "report" || onLimit === "wait") && { onLimit }),
    ...(priority === "background" && { priority }),
    ...(profile !== "" && { profile }),
    idempotencyKey: key,
  };
}

function empty(): Draft {
  const bounds = { maxTurns: "", maxBudgetUsd: "", onLimit: "", priority: "" };
  return { prompt: "", cwd: "", model: "", permissionMode: "", profile: "", ...bounds, key: newRetryKey() };
}
