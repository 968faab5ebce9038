import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { signIn } from "../kit/clients/console-client.ts";
import { useWorld } from "../kit/world.ts";

/** The cost of the console: for a user who opens it, and for a server without it. */

const ASSETS = "dist/console/assets";
const MAX_BYTES = 120 * 1024;

const world = useWorld({ agent: "stand-in" });

const scripts = () => readdirSync(ASSETS).filter((name) => name.endsWith(".js"));
const textOf = (name: string) => readFileSync(join(ASSETS, name), "utf8");

/** Loaded with the page, before any navigation: the code that it names, and what that imports at once. */
function atOnce(): Set<string> {
  const page = readFileSync("dist/console/index.html", "utf8");
  const found = new Set(scripts().filter((name) => page.includes(name)));
  for (const name of found) {
    const imports = textOf(name).matchAll(/\b(?:from|import)\s*["']\.\/([^"']+\.js)["']/g);
    for (const [, imported = ""] of imports) found.add(imported);
  }
  return found;
}

it("the page's code is at most 120 KB compressed, without its charts, which load when they are shown", () => {
  const charts = scripts().filter((name) => textOf(name).includes("borderSkipped"));
  const early = atOnce();
  expect(early.size).toBeGreaterThan(0);
  expect(charts).toHaveLength(1);
  expect(charts.filter((name) => early.has(name))).toEqual([]);
  const others = scripts().filter((name) => !charts.includes(name));
  const bytes = others.reduce((sum, name) => sum + gzipSync(textOf(name)).length, 0);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
});

/** Makes Node record each file that it loads. */
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

/** Files of the server that hold code of the console: they name its paths, or its policy. */
const ofConsole = (files: string[]) =>
  files.filter((file) => /\/console\/api|trusted-types 'none'/.test(readFileSync(join("dist", file), "utf8")));

it("a server on stdio loads nothing of the console, and one over HTTP does", async () => {
  const [plain, open] = [tracing(), tracing()];
  const server = await world.server({ env: plain.env });
  const started = { prompt: scriptTag([{ text: "Well." }]), cwd: world.folder(), waitMs: 40_000 };
  expect(await server.call("claude_code", started)).toMatchObject({ result: { result: "Well." } });
  const http = await world.http({ env: open.env });
  await signIn(http, http.token);
  expect(ofConsole(open.loaded()).length).toBeGreaterThan(0);
  expect(plain.loaded()).toContain("cli/main.js");
  expect(ofConsole(plain.loaded())).toEqual([]);
});
