import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { readMarkdown, type Block, type Cell, type Inline, type Level } from "./markdown-tree.ts";
import styles from "./markdown.module.css";

/** Shows text of an agent as elements built here, so that no part is ever parsed as HTML. Headings begin below h2. */
export function Markdown({ text }: { readonly text: string }) {
  const blocks = useMemo(() => readMarkdown(text), [text]);
  return <div class={styles["markdown"]}>{blocks.map(showBlock)}</div>;
}

function showBlock(block: Block): VNode {
  switch (block.kind) {
    case "heading":
      return <Heading level={block.level}>{block.inside.map(showInline)}</Heading>;
    case "paragraph":
      return <p>{block.inside.map(showInline)}</p>;
    case "code":
      return (
        <pre tabIndex={0} aria-label={block.language === "" ? "Code" : `Code, ${block.language}`} role="group">
          <code>{block.text}</code>
        </pre>
      );
    case "list":
      return <List block={block} />;
    case "quote":
      return <blockquote>{block.blocks.map(showBlock)}</blockquote>;
    case "table":
      return <Table block={block} />;
    case "rule":
      return <hr />;
    case "plain":
      return <p class={styles["as-written"]}>{block.text}</p>;
  }
}

function Heading({ children, level }: { readonly children: ComponentChildren; readonly level: Level }) {
  const Tag = `h${level}` as const;
  return <Tag>{children}</Tag>;
}

function List({ block }: { readonly block: Extract<Block, { kind: "list" }> }) {
  const items = block.items.map(({ blocks, checked }, at) => (
    <li key={at} class={checked === undefined ? undefined : styles["task"]}>
      {checked !== undefined && (
        <input type="checkbox" checked={checked} disabled aria-label={checked ? "Done" : "To do"} />
      )}
      {blocks.map((inner, line) =>
        inner.kind === "paragraph" ? <div key={line}>{inner.inside.map(showInline)}</div> : showBlock(inner),
      )}
    </li>
  ));
  return block.start === undefined ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
}

function Table({ block }: { readonly block: Extract<Block, { kind: "table" }> }) {
  const side = ({ align }: Cell) => (align === undefined ? undefined : styles[`to-${align}`]);
  return (
    <div class={styles["wide"]} tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {block.head.map((cell, at) => (
              <th key={at} class={side(cell)} scope="col">
                {cell.inside.map(showInline)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {block.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column} class={side(cell)}>
                  {cell.inside.map(showInline)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function showInline(inline: Inline): ComponentChildren {
  if (typeof inline === "string") return inline;
  switch (inline.kind) {
    case "break":
      return <br />;
    case "code":
      return <code>{inline.text}</code>;
    case "link":
      return (
        <a href={inline.href} title={inline.href} target="_blank" rel="noopener noreferrer">
          {inline.inside.map(showInline)}
        </a>
      );
    case "strong":
      return <strong>{inline.inside.map(showInline)}</strong>;
    case "em":
      return <em>{inline.inside.map(showInline)}</em>;
    case "del":
      return <del>{inline.inside.map(showInline)}</del>;
  }
}
