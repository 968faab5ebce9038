#!/usr/bin/env node
// The stand-in for Claude Code, with a copy of its input in `stdin.txt` of its folder.
import { appendFileSync } from "node:fs";

const emit = Reflect.get(process.stdin, "emit");
process.stdin.emit = function (event, chunk, ...rest) {
  if (event === "data") appendFileSync("stdin.txt", chunk);
  return emit.call(this, event, chunk, ...rest);
};
await import("../stand-in/claude.mjs");
