import { useId, useState } from "preact/hooks";
import type { Usage } from "../../../src/console/wire-usage.ts";
import { count, duration, usd } from "../parts/format.ts";
import { displayLine } from "../parts/text.ts";
import { Cell, Head, Row, Table } from "./table.tsx";
import styles from "./usage.module.css";

type Directory = Usage["directories"][number];

const ORDERS = {
  cost: { words: "Cost", of: ({ costUsd }: Directory) => costUsd },
  turns: { words: "Turns", of: ({ turns }: Directory) => turns },
  time: { words: "Time", of: ({ durationMs }: Directory) => durationMs },
  sessions: { words: "Sessions", of: ({ sessions }: Directory) => sessions },
} as const;

type Order = keyof typeof ORDERS;

const isOrder = (name: string): name is Order => name in ORDERS;

/** Number of rows before "Show all". */
const FIRST = 15;

export function Directories({ directories }: { readonly directories: readonly Directory[] }) {
  const id = useId();
  const [order, setOrder] = useState<Order>("cost");
  const [isWhole, setWhole] = useState(false);
  const { of } = ORDERS[order];
  const sorted = directories.toSorted((a, b) => of(b) - of(a));
  const shown = isWhole ? sorted : sorted.slice(0, FIRST);
  return (
    <section class={styles["directories"]} aria-labelledby={id}>
      <div class={styles["list-head"]}>
        <h2 id={id}>Directories</h2>
        <label>
          Sort by{" "}
          <select
            value={order}
            onChange={({ currentTarget: { value } }) => {
              if (isOrder(value)) setOrder(value);
            }}
          >
            {Object.entries(ORDERS).map(([name, { words }]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Table name={`Directories by ${order}`} heads={["Directory", "Cost", "Turns", "Time", "Sessions"]}>
        {shown.map((directory) => (
          <Line key={directory.cwd} directory={directory} />
        ))}
      </Table>
      {sorted.length > FIRST && (
        <button type="button" class="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show fewer" : `Show all ${count(sorted.length, "directory", "directories")}`}
        </button>
      )}
    </section>
  );
}

function Line({ directory: { costUsd, cwd, durationMs, failed, sessions, turns } }: { readonly directory: Directory }) {
  return (
    <Row>
      <Head>
        <code>{displayLine(cwd)}</code>
      </Head>
      <Cell of="Cost">{usd(costUsd)}</Cell>
      <Cell of="Turns">
        {turns.toLocaleString("en-US")}
        {failed > 0 && <span class={styles["failed"]}> ({failed.toLocaleString("en-US")} failed)</span>}
      </Cell>
      <Cell of="Time">{duration(durationMs)}</Cell>
      <Cell of="Sessions">{sessions.toLocaleString("en-US")}</Cell>
    </Row>
  );
}
