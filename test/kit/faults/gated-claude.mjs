#!/usr/bin/env node
// The stand-in for Claude Code, started once the file GO exists. Writes the file `began` before it waits.
import { existsSync, writeFileSync } from "node:fs";

if (!process.argv.includes("--version")) {
  writeFileSync("began", String(process.pid));
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(process.env["GO"])) Atomics.wait(cell, 0, 0, 20);
}
await import("../stand-in/claude.mjs");
