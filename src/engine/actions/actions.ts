import type { AnySessionAction } from "./action.ts";
import * as answering from "./answering.ts";
import * as begin from "./begin.ts";
import * as lifecycle from "./lifecycle.ts";
import * as processControl from "./process-control.ts";
import * as reading from "./reading.ts";
import * as receipts from "./receipts.ts";

const KINDS: readonly Readonly<Record<string, AnySessionAction>>[] = [
  begin,
  reading,
  receipts,
  lifecycle,
  processControl,
  answering,
];

/** All actions on sessions. Every surface has name, scope and limits of an action from here. */
export const ACTIONS: readonly AnySessionAction[] = KINDS.flatMap((kind) => Object.values(kind));
