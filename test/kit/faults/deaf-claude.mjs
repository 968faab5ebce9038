#!/usr/bin/env node
// The real Claude Code, except that requests to stop a task (`stop_task`) never arrive. First argument: path of Claude Code.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [path, ...args] = process.argv.slice(2);
const claude = spawn(path, args, { stdio: ["pipe", "inherit", "inherit"] });
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  if (!line.includes('"subtype":"stop_task"')) claude.stdin.write(`${line}\n`);
});
lines.on("close", () => claude.stdin.end());
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => claude.kill(signal));
claude.on("exit", (code) => process.exit(code ?? 1));
