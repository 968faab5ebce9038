import { useId } from "preact/hooks";
import type { ShownNode } from "../../../src/console/wire-usage.ts";
import { displayLine } from "../parts/text.ts";
import { Ago } from "../parts/time.tsx";
import { Cell, Head, Row, Table } from "./table.tsx";
import styles from "./usage.module.css";

/** Servers of a store that several machines share. Shows nothing without any. */
export function Nodes({ nodes }: { readonly nodes: readonly ShownNode[] }) {
  const id = useId();
  if (nodes.length === 0) return null;
  return (
    <section class={styles["directories"]} aria-labelledby={id}>
      <div class={styles["list-head"]}>
        <h2 id={id}>Nodes</h2>
      </div>
      <Table name="Nodes" heads={["Node", "State", "Sessions", "Slots", "Labels", "Version", "Seen"]}>
        {nodes.map((node) => (
          <Line key={node.nodeId} node={node} />
        ))}
      </Table>
    </section>
  );
}

function Line({ node }: { readonly node: ShownNode }) {
  const { maxLive, name, seenAt, sessions, state, version } = node;
  const labels = Object.entries(node.labels).map(([label, value]) => `${label}=${value}`);
  return (
    <Row>
      <Head isShort>{displayLine(name)}</Head>
      <Cell of="State">
        <span class={state === "dead" ? styles["failed"] : undefined}>{state}</span>
      </Cell>
      <Cell of="Sessions" isNothing={sessions === 0}>
        {sessions.toLocaleString("en-US")}
      </Cell>
      <Cell of="Slots">{maxLive.toLocaleString("en-US")}</Cell>
      <Cell of="Labels" isNothing={labels.length === 0}>
        {labels.length === 0 ? "none" : displayLine(labels.join(", "))}
      </Cell>
      <Cell of="Version">{displayLine(version)}</Cell>
      <Cell of="Seen">
        <Ago at={seenAt} />
      </Cell>
    </Row>
  );
}
