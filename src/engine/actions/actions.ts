import type { AnySessionAction } from "./action.ts";
import * as answering from "./answering.ts";
import * as begin from "./begin.ts";
import * as lifecycle from "./lifecycle.ts";
import * as processControl from "./process-control.ts";
import * as reading from "./reading.ts";

const KINDS: readonly Readonly<Record<string, AnySessionAction>>[] = [
  begin,
  reading,
  lifecycle,
  processControl,
  answering,
];

/** All that a caller can do to sessions. Whatever a surface offers of it has its name, its scope and its limits from here. */
export const ACTIONS: readonly AnySessionAction[] = KINDS.flatMap((kind) => Object.values(kind));
