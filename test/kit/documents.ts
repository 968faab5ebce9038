import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Documents of this project, for tests of their content. */

export interface Document {
  readonly file: string;
  readonly text: string;
}

export const DOCUMENTS: readonly Document[] = [
  ...readdirSync("docs")
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "AGENTS.md",
].map((file) => ({ file, text: readFileSync(file, "utf8") }));

/** Returns the fenced blocks of `language`, each with its document. */
export function blocksOf(language: string): Document[] {
  const fence = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, "g");
  return DOCUMENTS.flatMap(({ file, text }) =>
    [...text.matchAll(fence)].map(([, block = ""]) => ({ file, text: block })),
  );
}

/** Returns commands of `program` in shell blocks and inline code, as a user would type them. */
export function commandsOf(program: string): Document[] {
  const inBlocks = blocksOf("sh").flatMap(({ file, text }) =>
    text
      .replaceAll(/\\\n\s*/g, "")
      .split(/\n|&&|\|(?!\|)/)
      .map((line) => ({ file, text: line.replace(/\s+#\s.*$/, "").trim() })),
  );
  const inText = DOCUMENTS.flatMap(({ file, text }) =>
    [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => ({ file, text: code })),
  );
  return [...inBlocks, ...inText].filter(({ text }) => text.startsWith(`${program} `));
}

/** Splits a command into words like a shell, without expansions. */
export function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare = ""]) => single ?? double ?? bare,
  );
}
