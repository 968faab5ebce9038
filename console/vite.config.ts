import { basename, join } from "node:path";
import { defineConfig } from "vite";

import { breakpoints } from "./breakpoints.ts";

/** The page of the console, from console/ to dist/console/. `npx vite console` serves it while it is worked on. */
export default defineConfig(({ command }) => ({
  root: import.meta.dirname,
  // Built, it may lie below any path; while it is worked on it is where its server has it.
  base: command === "serve" ? "/console/" : "./",
  // The class "card" of requests.module.css is "requests-card" in the page: readable in a browser's tools, and known to tests.
  css: {
    modules: { generateScopedName: (name, file) => `${basename(file, ".module.css")}-${name}` },
    postcss: { plugins: [breakpoints] },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: join(import.meta.dirname, "..", "dist", "console"),
    emptyOutDir: true,
    target: "es2022",
    // Strict content security: nothing inline, and no polyfill that would be.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/console/api": process.env["CONSOLE_SERVER"] ?? "http://127.0.0.1:7465" } },
}));
