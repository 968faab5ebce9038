#!/usr/bin/env node
// The stand-in for Claude Code, which starts once `GO`, a file, is there. `began` in its folder says that it waits.
import { existsSync, writeFileSync } from "node:fs";

if (!process.argv.includes("--version")) {
  writeFileSync("began", String(process.pid));
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(process.env["GO"])) Atomics.wait(cell, 0, 0, 20);
}
await import("../stand-in/claude.mjs");
