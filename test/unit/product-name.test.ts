import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { PRODUCT } from "../../src/domain/names.ts";
import { helpText } from "../../src/cli/help.ts";
import { firstStartText } from "../../src/http/auth/authenticator.ts";

/** Every command in the texts runs this package, and never one of another name. */

const Manifest = z.object({ name: z.string(), bin: z.record(z.string(), z.string()) });
const Lock = z.object({ name: z.string(), packages: z.object({ "": Manifest }) });

const manifest = Manifest.parse(JSON.parse(readFileSync("package.json", "utf8")));
const { name } = manifest;

/** Texts of the repository, by path. */
const texts = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
  encoding: "utf8",
})
  .split("\0")
  .filter((path) => path !== "" && !/\.(?:png|ico|woff2?)$/.test(path))
  .flatMap((path) => {
    try {
      return [{ path, text: readFileSync(path, "utf8") }];
    } catch {
      // Deleted, but not committed yet.
      return [];
    }
  });

/** Texts that people read and paste from. */
const told = [
  ...texts.filter(({ path }) => /^(?:README|CONTRIBUTING|SECURITY|AGENTS)\.md$|^docs\/|^examples\//.test(path)),
  // Except for the table of programs that a shell may name.
  ...texts.filter(({ path }) => /^console\/src\/|^src\/(?!security\/shell\/)/.test(path)),
  ...[undefined, ..."serve demo doctor console daemon install uninstall token sessions version".split(" ")].map(
    (command) => ({
      path: `--help ${command ?? ""}`,
      text: helpText(command),
    }),
  ),
  {
    path: "the first start over HTTP",
    text: firstStartText({ file: "/f", token: "t" }, { url: "http://localhost/mcp", showToken: true }),
  },
];

/** Other programs that texts tell people to run, or that are compared with this one. */
const OTHERS = new Set(["@anthropic-ai/claude-code", "claude-agent-mcp", "mcp-remote", "n", "vite", "vitest"]);

/** `npx NAME`, `["npx", "-y", "NAME"]` even over several lines, `npm install -g NAME`. */
const RUN = /(?:\bnpx (?:-y |--yes )?|"-y",\s*"|npm (?:install|i) (?:-g|--global) )(@?[a-z][\w./-]*)/g;

/** Names that resemble the program's. */
const PROGRAM = /(?<![\w/@.-])claude-[a-z]+-mcp(?![\w-])/g;

describe("the name of the product", () => {
  it("is that of the package, its program, its lock file and the code", () => {
    const lock = Lock.parse(JSON.parse(readFileSync("package-lock.json", "utf8")));
    expect([PRODUCT, lock.name, lock.packages[""].name]).toEqual([name, name, name]);
    expect(Object.keys(manifest.bin)).toEqual([name]);
    expect(lock.packages[""].bin).toEqual(manifest.bin);
  });

  it("is in every command that texts tell people to run", () => {
    const others = told.flatMap(({ path, text }) =>
      [...text.matchAll(RUN)]
        .map(([, run = ""]) => run)
        .filter((run) => run !== name && !OTHERS.has(run))
        .map((run) => `${path}: ${run}`),
    );
    expect(others).toEqual([]);
    expect(told.filter(({ text }) => new RegExp(RUN).test(text)).map(({ path }) => path)).toEqual(
      expect.arrayContaining(["README.md", "docs/clients.md", "docs/http.md", "examples/clients/cursor.json"]),
    );
  });

  it("is in every command line of its program", () => {
    const misnamed = told.flatMap(({ path, text }) =>
      text
        .split("\n")
        .flatMap((line) => line.match(PROGRAM) ?? [])
        .filter((program) => program !== name && !OTHERS.has(program))
        .map((program) => `${path}: ${program}`),
    );
    expect(misnamed).toEqual([]);
    expect(helpText(undefined)).toContain(`Usage: ${name} `);
  });
});

describe("README, until the package is published", () => {
  const readme = readFileSync("README.md", "utf8");

  it("begins with the clone, and says that npx works after publication", () => {
    const [clone, npx] = [readme.indexOf("dist/cli/main.js"), readme.indexOf("npx -y")];
    expect([clone > 0, clone < npx]).toEqual([true, true]);
    const paragraph = readme.slice(readme.lastIndexOf("\n\n", npx), readme.indexOf("\n\n", npx));
    expect(paragraph.trim()).toMatch(/^Once published\b/);
    expect(readme.match(/npx -y/g)).toHaveLength(1);
  });

  it.each(["docs/clients.md", "docs/http.md"])(
    "has its notice repeated in %s, before the first npx command",
    (path) => {
      const text = readFileSync(path, "utf8");
      const said = text.search(/once published/i);
      const [first] = [...text.matchAll(RUN)].filter(([, run]) => run === name);
      expect([said > 0, said < (first?.index ?? 0)]).toEqual([true, true]);
    },
  );
});
