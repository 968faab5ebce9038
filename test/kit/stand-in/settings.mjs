// Parses the arguments and variables with which Claude Code is started.
import { readFileSync } from "node:fs";
import { hasPlan } from "./plan.mjs";

/** Parses `--name=value`, `--name value` and bare `--name`. */
function flagsOf(args) {
  const flags = new Map();
  for (let at = 0; at < args.length; at += 1) {
    if (!args[at].startsWith("--")) continue;
    const [name, ...value] = args[at].slice(2).split("=");
    const isPair = value.length === 0 && at + 1 < args.length && !args[at + 1].startsWith("--");
    if (isPair) at += 1;
    flags.set(name, isPair ? args[at] : value.length > 0 ? value.join("=") : "true");
  }
  return flags;
}

/** Splits a list of rules at commas outside parentheses. */
export function listOf(text = "") {
  return text
    .split(/,(?![^(]*\))/)
    .map((each) => each.trim())
    .filter((each) => each !== "");
}

export function settingsOf(args, env) {
  const flags = flagsOf(args);
  const given = flags.get("settings");
  const settings = given === undefined ? {} : JSON.parse(given.startsWith("{") ? given : readFileSync(given, "utf8"));
  const number = (name) => (flags.has(name) ? Number(flags.get(name)) : undefined);
  return {
    sessionId: flags.get("session-id"),
    resume: flags.get("resume"),
    fork: flags.has("fork-session"),
    resumeAt: flags.get("resume-session-at"),
    persist: !flags.has("no-session-persistence"),
    model: flags.get("model"),
    permissionMode: flags.get("permission-mode") ?? "default",
    allowed: listOf(flags.get("allowedTools")),
    disallowed: listOf(flags.get("disallowedTools")),
    tools: flags.has("tools") ? listOf(flags.get("tools")) : undefined,
    folders: listOf(flags.get("add-dir")),
    maxTurns: number("max-turns"),
    maxBudgetUsd: number("max-budget-usd"),
    schema: flags.has("json-schema") ? JSON.parse(flags.get("json-schema")) : undefined,
    partial: flags.has("include-partial-messages"),
    settings,
    baseUrl: env.ANTHROPIC_BASE_URL ?? "https://api.anthropic.com",
    retries: Number(env.CLAUDE_CODE_MAX_RETRIES ?? 10),
    runsAgain: env.CLAUDE_CODE_RESUME_INTERRUPTED_TURN === "1",
    keepsFiles:
      env.CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING === "true" || env.CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING === "1",
  };
}

const ALIASES = {
  opus: "claude-opus-5-5",
  sonnet: "claude-sonnet-5-5",
  haiku: "claude-haiku-5-5",
  default: hasPlan ? "claude-sonnet-5-5" : "claude-opus-5-5",
};

export function modelOf(name = "default") {
  return ALIASES[name] ?? name;
}
