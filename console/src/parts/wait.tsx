import { useComputed } from "@preact/signals";
import type { SessionRow } from "../../../src/console/wire.ts";
import { now } from "../state/clock.ts";
import { classNames } from "./class-names.ts";
import { moment } from "./format.ts";
import { waitWords } from "./wait-words.ts";
import styles from "./wait.module.css";

interface Props {
  readonly waiting: NonNullable<SessionRow["waiting"]>;
}

/** Wait of a session as a chip, updated when its end has passed. */
export function Wait({ waiting }: Props) {
  const { kind, until } = waiting;
  return (
    <span
      class={classNames(styles, "wait", kind === "environment" ? kind : undefined)}
      title={until === undefined ? undefined : moment(until)}
    >
      <WaitText key={JSON.stringify(waiting)} waiting={waiting} />
    </span>
  );
}

export function WaitText({ waiting }: Props) {
  const text = useComputed(() => waitWords(waiting, now.value));
  return <>{text}</>;
}
