import type { ComponentChildren } from "preact";
import { classNames } from "../parts/class-names.ts";
import styles from "./usage.module.css";

/** Table of numbers. With more than `MAX_COLUMNS_ON_PHONE` columns, becomes a list of cards on narrow screens. */

interface TableProps {
  /** Accessible name of the table. */
  readonly name: string;
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
}

/** Maximum number of columns that fit side by side on a phone. */
const MAX_COLUMNS_ON_PHONE = 4;

export function Table({ children, heads, name }: TableProps) {
  return (
    <table
      class={classNames(styles, "table", heads.length > MAX_COLUMNS_ON_PHONE ? "wide" : undefined)}
      aria-label={name}
    >
      <thead>
        <tr>
          {heads.map((head, n) => (
            <th key={n} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

export function Row({ children }: { readonly children: ComponentChildren }) {
  return <tr>{children}</tr>;
}

interface Named {
  /** Prevents line breaks. */
  readonly isShort?: boolean;
  readonly children: ComponentChildren;
}

/** Header cell of a row. */
export function Head({ children, isShort = false }: Named) {
  return (
    <th scope="row" class={isShort ? styles["short"] : undefined}>
      <bdi>{children}</bdi>
    </th>
  );
}

interface CellProps {
  /** Name of the column, shown before the number if the table is a list of cards. */
  readonly of: string;
  /** Renders the cell less prominently, for zeros. */
  readonly isNothing?: boolean;
  readonly children: ComponentChildren;
}

export function Cell({ children, isNothing = false, of }: CellProps) {
  return (
    <td data-of={of} class={isNothing ? "soft" : undefined}>
      <span>{children}</span>
    </td>
  );
}
