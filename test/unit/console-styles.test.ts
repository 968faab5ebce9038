import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, it } from "vitest";

import { breakpoints } from "../../console/breakpoints.ts";

/** Compares CSS modules of the page with the components that use them. Global classes stand in console/src/style. */

const root = join(import.meta.dirname, "..", "..", "console", "src");
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).map((name) => join(root, name));
const read = (file: string) => readFileSync(file, "utf8");
const withoutComments = (css: string) => css.replaceAll(/\/\*.*?\*\//gs, "");

const modules = files.filter((file) => file.endsWith(".module.css"));
const styles = files.filter((file) => file.endsWith(".css"));
const base = join(root, "style", "base.css");

function classesOf(css: string): Set<string> {
  const selectors = withoutComments(css).replaceAll(/:global\([^)]*\)/g, "");
  const found = [...selectors.matchAll(/([^{};]+)\{/g)].filter(([, selector = ""]) => !selector.trim().startsWith("@"));
  return new Set(
    found.flatMap(([, selector = ""]) => [...selector.matchAll(/\.([a-z_][\w-]*)/gi)].map(([, name = ""]) => name)),
  );
}

/** Properties of components with a class name; the component looks up the class in its own module. */
const PASSED_ON = new Set(["nested"]);

/** All components; `used` has the imported modules by local name. */
const components = files
  .filter((file) => file.endsWith(".tsx"))
  .map((file) => {
    const text = read(file);
    const imports = [...text.matchAll(/import (\w+) from "(\.[^"]+\.module\.css)";/g)];
    const used = new Map(imports.map(([, name = "", path = ""]) => [name, resolve(dirname(file), path)]));
    return { file, text, used };
  });

it.each(
  components.filter(({ used }) => used.size > 0).map((each) => [each.file.slice(root.length + 1), each] as const),
)("%s names only classes that its CSS modules have", (_, { text, used }) => {
  for (const [name, module] of used) {
    const named = [...text.matchAll(new RegExp(`\\b${name}\\["([^"]+)"\\]`, "g"))].map(([, each = ""]) => each);
    const classes = classesOf(read(module));
    expect(named.filter((each) => !classes.has(each))).toEqual([]);
  }
});

const globals = new Set(styles.filter((file) => !modules.includes(file)).flatMap((file) => [...classesOf(read(file))]));

it.each(components.map((each) => [each.file.slice(root.length + 1), each] as const))(
  "%s uses as global only classes of console/src/style",
  (_, { text, used }) => {
    const plain = [...text.matchAll(/\bclass(?:=|: )"([^"]+)"/g)].flatMap(([, names = ""]) => names.split(" "));
    expect(plain.filter((name) => !globals.has(name) && !PASSED_ON.has(name))).toEqual([]);
    for (const [, module = "", rest = ""] of text.matchAll(/classNames\((\w+), ([^()]*)/g)) {
      const local = classesOf(read(used.get(module) ?? ""));
      const named = [...rest.matchAll(/(?<!\[)"([\w-]+)"/g)].map(([, name = ""]) => name);
      expect(named.filter((name) => !local.has(name) && !globals.has(name))).toEqual([]);
    }
  },
);

it.each(modules.map((file) => [file.slice(root.length + 1), file] as const))(
  "%s has no class without a use",
  (_, file) => {
    const text = components
      .filter(({ used }) => [...used.values()].includes(file))
      .map((each) => each.text)
      .join("\n");
    // A class may consist of a word and a value (`fill-${n}`), or be a value of the data (`running`).
    const computed = [...text.matchAll(/`([a-z]+-)\$\{/g)].map(([, prefix = ""]) => prefix);
    const words = new Set(
      files
        .filter((each) => /\.tsx?$/.test(each))
        .flatMap((each) => read(each).match(/["'][\w-]+["']|\b[a-z_]+:/g) ?? []),
    );
    const isUsed = (name: string) =>
      words.has(`"${name}"`) || words.has(`${name}:`) || computed.some((prefix) => name.startsWith(prefix));
    expect([...classesOf(read(file))].filter((name) => !isUsed(name))).toEqual([]);
  },
);

it("only style/base.css contains colours", () => {
  const colours = styles.filter(
    (file) => file !== base && /#[\da-f]{3,8}\b|\b(?:rgb|hsl|oklch)a?\(/i.test(withoutComments(read(file))),
  );
  expect(colours).toEqual([]);
});

it("only console/breakpoints.ts contains breakpoints, and stylesheets name them", () => {
  const queries = styles.flatMap((file) => withoutComments(read(file)).match(/@(?:media|container)[^{]*/g) ?? []);
  expect(queries.filter((query) => /\d/.test(query))).toEqual([]);
  expect(queries.filter((query) => query.includes("--"))).not.toEqual([]);
});

it("an unknown breakpoint is an error of the build", () => {
  expect(() => breakpoints.AtRule.media({ params: "(--fone)" })).toThrow(/--fone: unknown breakpoint\. .*--phone/);
});
