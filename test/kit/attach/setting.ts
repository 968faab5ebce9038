import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

import type { Options } from "@anthropic-ai/claude-agent-sdk";

import type { ScriptedModel } from "../../../src/demo/model/server.ts";
import { SHORT_LIVED } from "../world.ts";
import { KeptClaude } from "./kept-claude.ts";

/** A Claude Code not yet started: `options` are the fewest to start with, `cwd` is its folder. */
export interface Setting {
  readonly cwd: string;
  readonly kept: KeptClaude;
  readonly options: Options;
}

export function newSetting(model: ScriptedModel, onEnd: (end: () => void) => void): Setting {
  const cwd = mkdtempSync(join(tmpdir(), "attach-"));
  const kept = new KeptClaude();
  onEnd(() => {
    kept.kill();
    rmSync(cwd, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });
  const env = {
    PATH: process.env["PATH"],
    HOME: cwd,
    CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "1",
    ...model.environment(join(cwd, ".config")),
    ...SHORT_LIVED,
  };
  return {
    cwd,
    kept,
    options: { cwd, env, permissionMode: "default", sessionId: randomUUID(), mcpServersDelivery: "initialize" },
  };
}

export const MCP_SERVER: NonNullable<Options["mcpServers"]> = {
  mini: { command: process.execPath, args: [join(import.meta.dirname, "mcp-server.mjs")] },
};

/** Adds every kind of option that a session can have to `options`. */
export function everyOption({ cwd, options }: Setting): Options {
  const programs = join(cwd, "programs");
  mkdirSync(programs);
  // Stand-ins for bubblewrap and socat; test/attacks tests the real sandbox.
  program(join(programs, "bwrap"), [
    `echo "$@" >> ${join(cwd, "bwrap.log")}`,
    'while [ $# -gt 0 ] && [ "$1" != "--" ]; do shift; done',
    '[ $# -gt 0 ] && shift && exec "$@"',
    "exit 0",
  ]);
  program(join(programs, "socat"), [
    'case "$1" in UNIX-LISTEN:*) socket=${1#UNIX-LISTEN:}; touch "${socket%%,*}"; exec tail -f /dev/null;; esac',
  ]);
  const plugin = join(cwd, "plugged");
  mkdirSync(join(plugin, ".claude-plugin"), { recursive: true });
  writeFileSync(join(plugin, ".claude-plugin", "plugin.json"), JSON.stringify({ name: "plugged" }));
  return {
    ...options,
    env: { ...options.env, PATH: [programs, process.env["PATH"]].join(delimiter) },
    agents: { helper: { description: "helps", prompt: "Help." } },
    allowedTools: ["mcp__mini__ping"],
    disallowedTools: ["WebFetch", "Bash(rm *)"],
    includePartialMessages: true,
    mcpServers: MCP_SERVER,
    plugins: [{ type: "local", path: plugin }],
    sandbox: { enabled: true, autoAllowBashIfSandboxed: false },
    settings: { permissions: { deny: ["Read(//etc/hostname)"] } },
    settingSources: ["user", "project", "local"],
    systemPrompt: { type: "preset", preset: "claude_code", append: "Be kind." },
  };
}

function program(file: string, lines: string[]): void {
  writeFileSync(file, ["#!/bin/sh", ...lines, ""].join("\n"));
  chmodSync(file, 0o755);
}

export const bash = (command: string, more = {}) => ({
  name: "Bash",
  input: { command, description: "a step", ...more },
});

export const write = (file: string) => ({ name: "Write", input: { file_path: file, content: "written\n" } });
