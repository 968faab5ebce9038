import { describe, expect, it } from "vitest";
import { linesToShow, hunksBetween, hunksReported } from "../../console/src/parts/diff-lines.ts";
import { readMarkdown, safeHref, type Block } from "../../console/src/parts/markdown-tree.ts";
import { processorMs } from "../kit/runner/processor-time.ts";

/** Returns all text that a reader sees. */
function textOf(node: unknown): string {
  if (typeof node === "string") return node;
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (typeof node !== "object" || node === null) return "";
  const { blocks, head, inside, items, rows, text } = node as Record<string, unknown>;
  return [text, inside, items, blocks, head, rows].map(textOf).join("");
}

function depthOf(node: unknown): number {
  if (typeof node !== "object" || node === null) return 0;
  return 1 + Math.max(0, ...Object.values(node).map(depthOf));
}

const kinds = (blocks: readonly Block[]) => blocks.map(({ kind }) => kind);

describe("Markdown of agents", () => {
  it("Markdown becomes headings, lists, tables, code, quotes and rules", () => {
    const text = "# One\n\n- [x] a\n- [ ] b\n\n3. c\n\n| h |\n|--:|\n| 1 |\n\n```ts x\nlet a;\n```\n\n> q\n\n---\n";
    const blocks = readMarkdown(text);
    expect(kinds(blocks)).toEqual(["heading", "list", "list", "table", "code", "quote", "rule"]);
    expect(blocks[1]).toMatchObject({ start: undefined, items: [{ checked: true }, { checked: false }] });
    expect(blocks[2]).toMatchObject({ start: 3 });
    expect(blocks[3]).toMatchObject({ head: [{ align: "right", inside: ["h"] }], rows: [[{ inside: ["1"] }]] });
    expect(blocks[4]).toEqual({ kind: "code", language: "ts", text: "let a;" });
  });

  it("headings in Markdown are below those of the page, without skipping a level", () => {
    const levels = readMarkdown("#### a\n\n# b\n\n#### c\n\n> # d\n").flatMap((block) =>
      block.kind === "heading" ? [block.level] : [],
    );
    expect(levels).toEqual([3, 3, 4]);
  });

  it("HTML in Markdown is shown literally", () => {
    const text = "a <img src=x onerror=alert(1)> b\n\n<script>alert(2)</script>\n\n<div>\n\n**bold**\n";
    const blocks = readMarkdown(text);
    expect(textOf(blocks)).toContain("<img src=x onerror=alert(1)>");
    expect(textOf(blocks)).toContain("<script>alert(2)</script>");
    expect(JSON.stringify(blocks)).not.toContain('"html"');
  });

  it("a path in Markdown is shown beside its link text, because a browser could not open the path", () => {
    const shown = (text: string) =>
      readMarkdown(text).map((block) => (block.kind === "paragraph" ? block.inside : block));
    expect(shown("See [the notes](docs/notes.md#top) there.")).toEqual([
      ["See ", "the notes", " (", { kind: "code", text: "docs/notes.md#top" }, ")", " there."],
    ]);
    expect(shown("[a.ts](a.ts) and [top](#top)")).toEqual([["a.ts", " and ", "top"]]);
    for (const text of ["[x](javascript:alert(1))", "[x](//evil.example)", "[x](file:///etc/passwd)"])
      expect(shown(text)).toEqual([[text]]);
  });

  it.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "//evil.example",
    "/console/api/me",
    "#/x",
    "vbscript:x",
    " javascript:x",
    "java\tscript:x",
    "https://",
  ])("Markdown does not link to %j", (href) => {
    expect(safeHref(href)).toBeUndefined();
    expect(JSON.stringify(readMarkdown(`[label](<${href}>)`))).not.toContain('"link"');
  });

  it("Markdown links to web pages and mail addresses, and to images without loading them", () => {
    expect(
      readMarkdown("[a](https://a.example/?x=1&amp;y=2) ![p](http://b.example/p.gif) <mailto:c@d.example>"),
    ).toEqual([
      {
        kind: "paragraph",
        inside: [
          { kind: "link", href: "https://a.example/?x=1&y=2", inside: ["a"] },
          " ",
          { kind: "link", href: "http://b.example/p.gif", inside: ["Image: p"] },
          " ",
          { kind: "link", href: "mailto:c@d.example", inside: ["mailto:c@d.example"] },
        ],
      },
    ]);
  });

  it("Markdown shows characters that would reverse or hide text as code points, even as entities", () => {
    const text = textOf(readMarkdown("a\u202Eb &#x202e; &amp;lt; \u001B[31mred"));
    expect(text).toBe("a⟨U+202E⟩b ⟨U+202E⟩ &lt; red");
  });

  it.each([
    ["quotes", `${">".repeat(50_000)} x`],
    ["lists", Array.from({ length: 400 }, (_, at) => `${"  ".repeat(at)}- x`).join("\n")],
    ["brackets", "[".repeat(50_000)],
    ["stars", "*a **b ".repeat(9_000)],
    ["ticks", "`a``b```".repeat(8_000)],
    ["links", "[a](b".repeat(10_000)],
    ["images", "![](".repeat(15_000)],
    ["less-than signs", "<a ".repeat(20_000)],
    ["table cells", `${"|".repeat(3_000)}\n${"|-".repeat(3_000)}\n${"|".repeat(3_000)}`],
    ["lines", "a\n".repeat(200_000)],
    ["blank paragraphs", "*a\n\n".repeat(20_000)],
  ])("excessive %s in Markdown become a tree of bounded depth within 2 s", async (_, text) => {
    let blocks: ReturnType<typeof readMarkdown> = [];
    expect(await processorMs(() => (blocks = readMarkdown(text)))).toBeLessThan(2_000);
    expect(depthOf(blocks)).toBeLessThan(120);
    expect(textOf(blocks).length).toBeGreaterThan(0);
  });

  it("a long text is shown completely, its end as plain text", () => {
    const text = `${"word ".repeat(20)}\n\n`.repeat(1_000);
    const blocks = readMarkdown(`${text}**end**`);
    expect(blocks.at(-1)?.kind).toBe("plain");
    expect(textOf(blocks)).toMatch(/\*\*end\*\*$/);
  });
});

describe("a change of a file", () => {
  it("a change of a file is shown line by line, without numbers if only a part of the file is known", () => {
    const lines = linesToShow(hunksBetween("a\nb\nc", "a\nB\nc"), false);
    expect(lines).toEqual([
      { kind: "same", text: "a" },
      { kind: "removed", text: "b" },
      { kind: "added", text: "B" },
      { kind: "same", text: "c" },
    ]);
  });

  it("a change of a file is shown as the tool reports it, with the line numbers of the file", () => {
    const hunk = { oldStart: 7, oldLines: 2, newStart: 9, newLines: 2, lines: [" a", "-b", "+B", "\\ No newline"] };
    const hunks = hunksReported({ filePath: "/a", structuredPatch: [hunk, { ...hunk, lines: [" z"] }, 5] });
    expect(linesToShow(hunks ?? [], true)).toEqual([
      { kind: "same", text: "a", oldNumber: 7, newNumber: 9 },
      { kind: "removed", text: "b", oldNumber: 8 },
      { kind: "added", text: "B", newNumber: 10 },
      { kind: "gap", text: "" },
      { kind: "same", text: "z", oldNumber: 7, newNumber: 9 },
    ]);
    expect(hunksReported({ structuredPatch: [] })).toBeUndefined();
    expect(hunksReported(undefined)).toBeUndefined();
  });

  it("a change of 30,000 lines is computed within 2 s, as a removal and an addition of everything", async () => {
    const text = (word: string) => Array.from({ length: 30_000 }, (_, at) => `${word} ${String(at)}`).join("\n");
    let lines: ReturnType<typeof linesToShow> = [];
    const compare = () => (lines = linesToShow(hunksBetween(text("a"), text("b")), false));
    expect(await processorMs(compare)).toBeLessThan(2_000);
    expect(lines).toHaveLength(60_000);
    expect(hunksBetween(text("a").slice(0, 90_000), text("b").slice(0, 90_000))).toHaveLength(1);
  });
});
