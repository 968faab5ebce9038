#!/usr/bin/env node
// Stands in for Claude Code in tests of this server alone: speaks stream-json with the Agent SDK, asks the scripted model, and
// starts in a seventh of the time. `test/server/stand-in.test.ts` compares its behavior with the real Claude Code.
import { createInterface } from "node:readline";
import { probe } from "./api.mjs";
import { AGENTS } from "./init.mjs";
import { Session } from "./session.mjs";
import { modelOf, settingsOf } from "./settings.mjs";
import { stopShells } from "./shell.mjs";
import { startFailure } from "./turn.mjs";
import { answered, serve, write } from "./wire.mjs";

if (process.argv.includes("--version")) {
  process.stdout.write("2.1.332 (Claude Code)\n");
  process.exit();
}

const session = begun(settingsOf(process.argv.slice(2), process.env));
const MODES = ["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"];

const answers = {
  initialize({ appendSystemPrompt, hooks, systemPrompt }) {
    // A later owner sends no hooks: keep those of the first owner.
    session.hooks = hooks ?? session.hooks;
    session.systemPrompt = [systemPrompt ?? session.systemPrompt, appendSystemPrompt].flat().filter(Boolean).join("\n");
    return {
      commands: [],
      models: [],
      agents: AGENTS.map((name) => ({ name, description: name })),
      output_style: "default",
      available_output_styles: ["default"],
      account: {},
      // The SDK waits for `hooks_applied` before it continues.
      hooks_applied: true,
      mcp_servers_applied: true,
    };
  },
  interrupt: (request) => session.interrupt(request),
  async set_model({ model }) {
    const named = modelOf(model);
    if (named === model) await probe(session.settings, named, { "x-claude-code-session-id": session.sessionId });
    session.model = named;
  },
  set_permission_mode({ mode }) {
    if (!MODES.includes(mode)) throw new Error(`Invalid permission mode: ${mode}`);
    session.permissions.mode = mode;
    session.toldMode();
    return { mode };
  },
  get_settings: () => ({ effective: { permissions: { deny: session.settings.settings.permissions?.deny ?? [] } } }),
  get_usage: () => {
    const { added, cost, models, removed } = session.account;
    return {
      rate_limits_available: false,
      rate_limits: null,
      session: { total_cost_usd: cost, model_usage: models, total_lines_added: added, total_lines_removed: removed },
    };
  },
  get_context_usage() {
    const tokens = Math.ceil(JSON.stringify(session.main.messages).length / 4);
    const categories = [{ name: "Messages", tokens }];
    return {
      categories,
      totalTokens: tokens,
      maxTokens: 1_000_000,
      percentage: Math.round(tokens / 10_000),
      model: session.model,
    };
  },
  stop_task: ({ task_id: id }) => session.tasks.stop(id),
  get_task_output: ({ task_id: id }) => session.tasks.outputOf(id),
  rewind_files({ dry_run: isDry, user_message_id: uuid }) {
    if (!session.settings.keepsFiles) return { canRewind: false, error: "File rewinding is not enabled." };
    return session.checkpoints.rewind(uuid, isDry === true);
  },
};

/** Creates the session, or reports that it cannot be resumed and exits. */
function begun(settings) {
  try {
    return new Session(settings);
  } catch (error) {
    write(startFailure(error.message, settings.resume));
    return process.exit(1);
  }
}

function leave(code) {
  stopShells();
  process.exit(code);
}

process.on("SIGTERM", () => leave(143));
process.on("SIGINT", () => leave(session.hasFailed ? 1 : 0));

let atEnd = false;
session.onRest = () => {
  if (atEnd && !session.isBusy) leave(session.hasFailed ? 1 : 0);
};

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "") continue;
  const message = JSON.parse(line);
  if (message.type === "control_request") void serve(message, answers);
  if (message.type === "control_response") answered(message.response);
  if (message.type === "user") session.prompt(message);
  if (message.type === "control_request" && message.request.subtype === "initialize") session.begin();
}
atEnd = true;
session.onRest();
