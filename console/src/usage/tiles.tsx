import type { Amounts } from "../../../src/console/wire-usage.ts";
import { count, duration, usd } from "../parts/format.ts";
import { requests } from "../state/live.ts";
import { compactNumber } from "./figure.ts";
import styles from "./usage.module.css";

export function Tiles({ totals }: { readonly totals: Amounts }) {
  const { costUsd, failed, tokens, turns, waitedMs, workedMs } = totals;
  const all = tokens.input + tokens.output + tokens.cacheRead + tokens.cacheCreation;
  const each = turns > 0 ? `${usd(costUsd / turns)} a turn` : "";
  return (
    <dl class={styles["tiles"]}>
      <Tile name="Cost" value={usd(costUsd)} more={each} />
      <Tile name="Turns" value={turns.toLocaleString("en-US")} more="" />
      <Tile
        name="Failed"
        value={share(failed, turns)}
        more={`${failed.toLocaleString("en-US")} of ${count(turns, "turn")}`}
      />
      <Tile
        name="Tokens"
        value={compactNumber(all)}
        more={`${compactNumber(tokens.input)} in, ${compactNumber(tokens.output)} out, the rest cached`}
      />
      <Tile name="Time worked" value={duration(workedMs)} more={perTurn(workedMs, turns)} />
      <Tile name="Waiting for approval" value={waitedMs > 0 ? duration(waitedMs) : "None"} more={openWords()} />
    </dl>
  );
}

function openWords(): string {
  const open = requests.value.length;
  return open === 0 ? "no open requests" : `${count(open, "open request")} now`;
}

function Tile({ more, name, value }: { readonly name: string; readonly value: string; readonly more: string }) {
  return (
    <div class={styles["tile"]}>
      <dt>{name}</dt>
      <dd class={styles["value"]}>{value}</dd>
      {more !== "" && <dd class="soft">{more}</dd>}
    </div>
  );
}

function share(part: number, of: number): string {
  if (of === 0) return "–";
  return (part / of).toLocaleString("en-US", { style: "percent", maximumFractionDigits: 1 });
}

function perTurn(ms: number, turns: number): string {
  return turns > 0 ? `${duration(ms / turns)} a turn` : "";
}
