// A use of a tool: hooks, decision, execution.
import { ask } from "./wire.mjs";
import { toolFor, ToolError } from "./tools.mjs";

/** Thrown if the command was interrupted while it ran. */
export class Stopped extends Error {}

/** Throws `ToolError` if the tool does not run. */
export async function useTool(call, conversation, signal) {
  const { session } = conversation;
  const { id, input, name } = call;
  const context = session.contextOf(conversation, call, signal);
  const tool = toolFor(call, context);
  const hooked = await callHooks(session, call, signal);
  if (hooked.deny !== undefined) {
    throw refusal(session, call, conversation, {
      message: `PreToolUse:${name} hook error: ${hooked.deny}`,
      decision: { decision: "reject", source: "hook", reason_type: "hook" },
    });
  }
  const use = { input, name, path: tool.path?.(input), tool };
  const decided = session.permissions.decide(use, hooked.ask);
  if (decided.deny !== undefined) {
    const { deny: message, why } = decided;
    session.emit({
      type: "system",
      subtype: "permission_denied",
      tool_name: name,
      tool_use_id: id,
      decision_reason_type: why,
      message,
    });
    throw refusal(session, call, conversation, {
      message,
      decision: { decision: "reject", source: "config", reason_type: why },
    });
  }
  const given = decided.ask ? await asked(call, conversation, { question: decided.ask, signal, tool }) : input;
  const reason = decided.allow === undefined || tool.isFree ? {} : { reason_type: decided.allow };
  const decision = { decision: "accept", source: decided.ask ? "user_temporary" : "config", ...reason };
  const meta = { permission_decision: decision };
  try {
    return { ...(await tool.run(given, context)), meta };
  } catch (error) {
    // A running tool may already have had an effect.
    if (!(error instanceof ToolError) && signal.aborted) throw name === "Bash" ? new Stopped() : error;
    // Invalid input from a hook or an approver fails the tool, not the program.
    throw Object.assign(error instanceof ToolError ? error : new ToolError(String(error)), { meta });
  }
}

function refuse(session, { id, input, name }, { agent }) {
  if (!agent) session.denials.push({ tool_name: name, tool_use_id: id, tool_input: input });
}

function refusal(session, call, conversation, { decision, message }) {
  refuse(session, call, conversation);
  const error = new ToolError(message);
  error.meta = { non_execution_kind: "permission-rule", permission_decision: decision };
  return error;
}

/** Returns the decisions of all hooks by kind; `deny` counts before `ask`. */
async function callHooks(session, { id, input, name }, signal) {
  const decided = {};
  for (const { hookCallbackIds, matcher } of session.hooks.PreToolUse ?? []) {
    if (matcher !== undefined && matcher !== "" && !new RegExp(`^(?:${matcher})$`).test(name)) continue;
    for (const callback of hookCallbackIds) {
      const about = { hook_event_name: "PreToolUse", tool_name: name, tool_input: input, tool_use_id: id };
      const asking = {
        subtype: "hook_callback",
        callback_id: callback,
        input: { ...session.hookInput(), ...about },
        tool_use_id: id,
      };
      const { hookSpecificOutput: said = {} } = await ask(asking, signal);
      if (said.permissionDecision) decided[said.permissionDecision] = said.permissionDecisionReason;
    }
  }
  return decided;
}

/** Asks an approver; resolves with the allowed input. */
async function asked(call, conversation, { question, signal, tool }) {
  const { session } = conversation;
  const { id, input, name } = call;
  const request = {
    subtype: "can_use_tool",
    tool_name: name,
    display_name: name,
    input,
    ...question,
    tool_use_id: id,
    ...(conversation.agent && { agent_id: conversation.agent.id }),
    ...(tool.asksAlways && { requires_user_interaction: true }),
  };
  const answer = await session.waitingFor(ask(request, signal)).catch((error) => {
    if (signal.aborted) refuse(session, call, conversation);
    throw error;
  });
  if (answer.behavior === "allow") {
    session.permissions.update(answer.updatedPermissions);
    session.toldMode();
    return answer.updatedInput ?? input;
  }
  if (answer.interrupt && !conversation.agent) {
    refuse(session, call, conversation);
    session.interruptTurn();
    signal.throwIfAborted();
  }
  const decision = { decision: "reject", source: "user_reject" };
  throw refusal(session, call, conversation, { message: answer.message, decision });
}
