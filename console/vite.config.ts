import { basename, join } from "node:path";
import { defineConfig } from "vite";

import { breakpoints } from "./breakpoints.ts";

/** Builds the page from console/ to dist/console/. For development, `npx vite console` serves the page. */
export default defineConfig(({ command }) => ({
  root: import.meta.dirname,
  // The built page may be served below any path; the development server uses the path of the real server.
  base: command === "serve" ? "/console/" : "./",
  // Class "card" of requests.module.css becomes "requests-card" on the page: readable in developer tools, and stable for tests.
  css: {
    modules: { generateScopedName: (name, file) => `${basename(file, ".module.css")}-${name}` },
    postcss: { plugins: [breakpoints] },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: join(import.meta.dirname, "..", "dist", "console"),
    emptyOutDir: true,
    target: "es2022",
    // The content security policy forbids inline resources, so no data URLs and no inlined polyfill.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/console/api": process.env["CONSOLE_SERVER"] ?? "http://127.0.0.1:7465" } },
}));
