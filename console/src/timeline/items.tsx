import { Component, createRef } from "preact";
import { Entry } from "./entry.tsx";
import type { Item } from "./reducer/item.ts";
import type { Reader } from "./reader.ts";
import { findAnchor, cardInView, type Anchor } from "./scroll.ts";
import styles from "./timeline.module.css";

interface Props {
  readonly items: readonly Item[];
  readonly reader: Reader;
}

/**
 * List of items. Visible items keep their place when items are added above. A class component, because hooks have no
 * `getSnapshotBeforeUpdate`.
 */
export class Items extends Component<Props> {
  readonly #list = createRef<HTMLOListElement>();

  override getSnapshotBeforeUpdate(): Anchor | null {
    const list = this.#list.current;
    if (this.props.reader.isAtEnd || !list) return null;
    return (list.parentElement && cardInView(list.parentElement)) ?? findAnchor(list) ?? null;
  }

  override componentDidMount(): void {
    this.props.reader.settle(undefined);
  }

  override componentDidUpdate(before: Props, _: unknown, anchor: Anchor | null): void {
    if (before.items !== this.props.items) this.props.reader.settle(anchor ?? undefined);
  }

  override render() {
    const { items } = this.props;
    return (
      <ol class={styles["items"]} ref={this.#list}>
        {items.map((item) => (
          <Entry key={item.key} item={item} />
        ))}
      </ol>
    );
  }
}
