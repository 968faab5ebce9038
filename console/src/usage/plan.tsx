import { useId } from "preact/hooks";
import type { AccountUse, PlanUse } from "../../../src/console/wire-usage.ts";
import { displayLine } from "../parts/text.ts";
import { now } from "../state/clock.ts";
import { classNames } from "../parts/class-names.ts";
import { budgetMeter, windowMeters, type Meter } from "./plan-words.ts";
import styles from "./plan.module.css";

/** Plan windows of accounts, and budgets of the day. Shows nothing without either. */
export function Plan({ plan: { accounts, budgets } }: { readonly plan: PlanUse }) {
  const id = useId();
  if (accounts.length === 0 && budgets.length === 0) return null;
  return (
    <section class={styles["plan"]} aria-labelledby={id}>
      <h2 id={id}>Plan and budgets</h2>
      <div class={styles["cards"]}>
        {accounts.map((account) => (
          <Account key={account.id} account={account} />
        ))}
        {budgets.length > 0 && (
          <div class={styles["card"]}>
            <h3>Budgets of today</h3>
            <p class="soft">Amounts are estimates of Claude Code. The day is the server’s.</p>
            {budgets.map((budget) => (
              <Line
                key={`${budget.scope} ${budget.name}`}
                meter={budgetMeter(budget)}
                of="Budget"
                isBare={budget.usdPerDay === undefined}
              />
            ))}
          </div>
        )}
      </div>
    </section>
  );
}

function Account({ account }: { readonly account: AccountUse }) {
  const { configFolder, hasWindows, paidBy } = account;
  return (
    <div class={styles["card"]}>
      <h3>{displayLine(paidBy)}</h3>
      <p class="soft">
        <code>{displayLine(configFolder)}</code>
      </p>
      {hasWindows ? (
        windowMeters(account, now.value).map((meter) => <Line key={meter.name} meter={meter} of={paidBy} />)
      ) : (
        <p>No windows: paid by use, without a plan.</p>
      )}
    </div>
  );
}

interface LineProps {
  readonly meter: Meter;
  /** Owner of the meter, for its accessible name. */
  readonly of: string;
  /** True without a bound, and so without a bar. */
  readonly isBare?: boolean;
}

function Line({ isBare = false, meter: { isFull, line, name, notes, used, value }, of }: LineProps) {
  const label = displayLine(name);
  return (
    <div class={styles["line"]}>
      <p class={styles["words"]}>
        <span>{label}</span>
        <span class={isFull ? styles["full"] : undefined}>{value}</span>
      </p>
      {!isBare && (
        <div
          class={styles["bar"]}
          role="meter"
          aria-label={`${displayLine(of)}: ${label}`}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={used}
          aria-valuetext={[value, ...notes].join(", ")}
        >
          <span class={classNames(styles, "used", isFull ? "full" : undefined)} style={{ width: `${String(used)}%` }} />
          {line !== undefined && <span class={styles["mark"]} style={{ left: `${String(line)}%` }} />}
        </div>
      )}
      {notes.length > 0 && <p class={classNames(styles, "soft", "notes")}>{notes.join(" · ")}</p>}
    </div>
  );
}
