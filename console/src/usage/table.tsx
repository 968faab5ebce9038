import type { ComponentChildren } from "preact";
import { classNames } from "../parts/class-names.ts";
import styles from "./usage.module.css";

/** A table of numbers; one of many columns becomes a list of cards where there is no room for it. */

interface Shown {
  /** What it is of. */
  readonly name: string;
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
}

/** More columns than these do not stand beside each other on a phone. */
const FEW = 4;

export function Table({ children, heads, name }: Shown) {
  return (
    <table class={classNames(styles, "table", heads.length > FEW ? "wide" : undefined)} aria-label={name}>
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
  /** It stays on its line. */
  readonly isShort?: boolean;
  readonly children: ComponentChildren;
}

/** What a row is of. */
export function Head({ children, isShort = false }: Named) {
  return (
    <th scope="row" class={isShort ? styles["short"] : undefined}>
      <bdi>{children}</bdi>
    </th>
  );
}

interface CellProps {
  /** Said before the number where the heads are not shown. */
  readonly of: string;
  /** It is nothing, and need not be seen at once. */
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
