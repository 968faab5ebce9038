import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { PRODUCT } from "../../src/domain/names.ts";
import { helpText } from "../../src/cli/help.ts";
import { firstStartText } from "../../src/http/auth/authenticator.ts";

/** Commands in all texts name the package of `package.json`. */

const Manifest = z.object({ name: z.string(), bin: z.record(z.string(), z.string()) });
const Lock = z.object({ name: z.string(), packages: z.object({ "": Manifest }) });

const manifest = Manifest.parse(JSON.parse(readFileSync("package.json", "utf8")));
const { name } = manifest;

/** Text files of the repository, by path. */
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

/** Texts for people to read and paste from. */
const userTexts = [
  ...texts.filter(({ path }) => /^(?:README|CONTRIBUTING|SECURITY|AGENTS)\.md$|^docs\/|^examples\//.test(path)),
  // Without `src/security/shell/`, because a table there lists programs.
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

/** Programs besides our own: recommended in the texts, or compared with ours. */
const OTHERS = new Set(["@anthropic-ai/claude-code", "claude-agent-mcp", "mcp-remote", "n", "vite", "vitest"]);

/** Matches `npx NAME`, `["npx", "-y", "NAME"]` (also over several lines) and `npm install -g NAME`. */
const RUN = /(?:\bnpx (?:-y |--yes )?|"-y",\s*"|npm (?:install|i) (?:-g|--global) )(@?[a-z][\w./-]*)/g;

/** Matches names similar to the name of our program. */
const PROGRAM = /(?<![\w/@.-])claude-[a-z]+-mcp(?![\w-])/g;

describe("the name of the product", () => {
  it("the package, its program, its lock file and the code have one name", () => {
    const lock = Lock.parse(JSON.parse(readFileSync("package-lock.json", "utf8")));
    expect([PRODUCT, lock.name, lock.packages[""].name]).toEqual([name, name, name]);
    expect(Object.keys(manifest.bin)).toEqual([name]);
    expect(lock.packages[""].bin).toEqual(manifest.bin);
  });

  it("every command that texts tell people to run names the package", () => {
    const others = userTexts.flatMap(({ path, text }) =>
      [...text.matchAll(RUN)]
        .map(([, run = ""]) => run)
        .filter((run) => run !== name && !OTHERS.has(run))
        .map((run) => `${path}: ${run}`),
    );
    expect(others).toEqual([]);
    expect(userTexts.filter(({ text }) => new RegExp(RUN).test(text)).map(({ path }) => path)).toEqual(
      expect.arrayContaining(["README.md", "docs/clients.md", "docs/http.md", "examples/clients/cursor.json"]),
    );
  });

  it("every command line names the program of the package", () => {
    const misnamed = userTexts.flatMap(({ path, text }) =>
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

  it("README begins with the clone, and says that npx works after publication", () => {
    const [clone, npx] = [readme.indexOf("dist/cli/main.js"), readme.indexOf("npx -y")];
    expect([clone > 0, clone < npx]).toEqual([true, true]);
    const paragraph = readme.slice(readme.lastIndexOf("\n\n", npx), readme.indexOf("\n\n", npx));
    expect(paragraph.trim()).toMatch(/^Once published\b/);
    expect(readme.match(/npx -y/g)).toHaveLength(1);
  });

  it.each(["docs/clients.md", "docs/http.md"])(
    "%s repeats the notice of README before its first npx command",
    (path) => {
      const text = readFileSync(path, "utf8");
      const notice = text.search(/once published/i);
      const [first] = [...text.matchAll(RUN)].filter(([, run]) => run === name);
      expect([notice > 0, notice < (first?.index ?? 0)]).toEqual([true, true]);
    },
  );
});
