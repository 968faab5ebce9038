import type { StartBody } from "../../../src/console/wire.ts";
import { newRetryKey } from "../net/api.ts";
import { me } from "../state/me.ts";
import { perUser } from "../state/per-user.ts";

/** What stands in the form. It stays there while one looks at another view. */
export interface Draft {
  readonly prompt: string;
  readonly cwd: string;
  readonly model: string;
  readonly permissionMode: string;
  readonly maxTurns: string;
  readonly maxBudgetUsd: string;
  /** However often it is sent, one session is started. */
  readonly key: string;
}

export const draft = perUser(empty);

export function write(to: Partial<Draft>): void {
  draft.value = { ...draft.value, ...to };
}

export function clearDraft(): void {
  draft.value = empty();
}

/** What was sent before with the same key was something else. */
export function renewKey(): void {
  write({ key: newRetryKey() });
}

/** The option that is shown as chosen is sent, even if it is the default. */
export function modeOf({ permissionMode }: Draft): string {
  const modes = me.value?.permissionModes ?? [];
  if (permissionMode !== "") return permissionMode;
  return modes.includes("default") ? "default" : (modes[0] ?? "");
}

/** Fields that are left empty are left to the server. */
export function bodyOf(written: Draft): StartBody {
  const { prompt, cwd, model, maxTurns, maxBudgetUsd, key } = written;
  const permissionMode = modeOf(written);
  return {
    prompt,
    ...(cwd.trim() !== "" && { cwd: cwd.trim() }),
    ...(model.trim() !== "" && { model: model.trim() }),
    ...(permissionMode !== "" && { permissionMode }),
    ...(maxTurns !== "" && { maxTurns: Number(maxTurns) }),
    ...(maxBudgetUsd !== "" && { maxBudgetUsd: Number(maxBudgetUsd) }),
    idempotencyKey: key,
  };
}

function empty(): Draft {
  return { prompt: "", cwd: "", model: "", permissionMode: "", maxTurns: "", maxBudgetUsd: "", key: newRetryKey() };
}
