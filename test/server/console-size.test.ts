import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { signIn } from "../kit/clients/console-client.ts";
import { useWorld } from "../kit/world.ts";

/** Measures the cost of the console: for a user with an open page, and for a server without a console. */

const ASSETS = "dist/console/assets";
const MAX_BYTES = 120 * 1024;

const world = useWorld({ agent: "stand-in" });

const scripts = () => readdirSync(ASSETS).filter((name) => name.endsWith(".js"));
const textOf = (name: string) => readFileSync(join(ASSETS, name), "utf8");

/** Scripts loaded with the page before any navigation: scripts in `index.html` and their static imports. */
function initialScripts(): Set<string> {
  const page = readFileSync("dist/console/index.html", "utf8");
  const found = new Set(scripts().filter((name) => page.includes(name)));
  for (const name of found) {
    const imports = textOf(name).matchAll(/\b(?:from|import)\s*["']\.\/([^"']+\.js)["']/g);
    for (const [, imported = ""] of imports) found.add(imported);
  }
  return found;
}

it("the page's code has at most 120 KB compressed, without its charts, which load when they are shown", () => {
  const charts = scripts().filter((name) => textOf(name).includes("borderSkipped"));
  const early = initialScripts();
  expect(early.size).toBeGreaterThan(0);
  expect(charts).toHaveLength(1);
  expect(charts.filter((name) => early.has(name))).toEqual([]);
  const others = scripts().filter((name) => !charts.includes(name));
  const bytes = others.reduce((sum, name) => sum + gzipSync(textOf(name)).length, 0);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
});

/** Makes Node record each loaded file. */
function tracing(): { env: Record<string, string>; loaded: () => string[] } {
  const folder = world.folder();
  const [out, hook] = [join(folder, "loaded"), join(folder, "hook.mjs")];
  const code = `import { appendFileSync } from "node:fs";
    export async function load(url, context, next) { appendFileSync(${JSON.stringify(out)}, url + "\\n"); return next(url, context); }`;
  writeFileSync(out, "");
  writeFileSync(
    hook,
    `import { register } from "node:module"; register("data:text/javascript,${encodeURIComponent(code)}");`,
  );
  const root = pathToFileURL("dist/").href;
  return {
    env: { NODE_OPTIONS: `--import=${pathToFileURL(hook).href}` },
    loaded: () =>
      readFileSync(out, "utf8")
        .split("\n")
        .flatMap((url) => (url.startsWith(root) ? [url.slice(root.length)] : [])),
  };
}

/** Selects files of the server with code of the console: a path of the API or the policy for scripts. */
const consoleFiles = (files: string[]) =>
  files.filter((file) => /\/console\/api|trusted-types 'none'/.test(readFileSync(join("dist", file), "utf8")));

it("a stdio server loads nothing of the console, and an HTTP server does", async () => {
  const [plain, open] = [tracing(), tracing()];
  const server = await world.server({ env: plain.env });
  const started = { prompt: scriptTag([{ text: "Well." }]), cwd: world.folder(), waitMs: 40_000 };
  expect(await server.call("claude_code", started)).toMatchObject({ result: { result: "Well." } });
  const http = await world.http({ env: open.env });
  await signIn(http, http.token);
  expect(consoleFiles(open.loaded()).length).toBeGreaterThan(0);
  expect(plain.loaded()).toContain("cli/main.js");
  expect(consoleFiles(plain.loaded())).toEqual([]);
});
