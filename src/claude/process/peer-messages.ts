import type { HookCallback, SDKMessageOrigin } from "@anthropic-ai/claude-agent-sdk";
import { PEER_MESSAGE } from "../../domain/approvals/peer-message.ts";
import type { Confirm } from "./open-requests.ts";

/**
 * Holds messages sent to a session by other Claude Code sessions. Claude Code calls the hook before handing a message to the
 * model, also in the middle of a turn, and drops the message if the hook blocks or gives no answer in time.
 */

/** Envelope written by Claude Code around every message; a sender cannot omit the envelope. */
const ENVELOPE = /<cross-session-message\b([^>]*)>/;
const WHOLE = /^<cross-session-message\b[^>]*>\n?(.*?)\n?<\/cross-session-message>$/s;

export function peerMessageGuard(confirm: Confirm): HookCallback {
  return async (input, id, { signal }) => {
    if (input.hook_event_name !== "UserPromptSubmit") return {};
    const { prompt } = input;
    const [, attributes] = ENVELOPE.exec(prompt) ?? [];
    if (attributes === undefined) return {};
    const asked = { id: id ?? input.prompt_id ?? prompt, toolName: PEER_MESSAGE, input: read(prompt, attributes) };
    const denied = await confirm({ ...asked, reason: "Another session sends this message." }, signal);
    if (denied === undefined) return {};
    const hookSpecificOutput = { hookEventName: "UserPromptSubmit" as const, suppressOriginalPrompt: true };
    return { decision: "block", reason: `The message of another session was denied: ${denied}`, hookSpecificOutput };
  };
}

/** Returns `name` (claimed by the sender), `from` (address) and `message`. */
function read(prompt: string, attributes: string): Record<string, string> {
  const of = (name: string) => new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1];
  const [from, name] = [of("from"), of("from-name")];
  const [, body = prompt] = WHOLE.exec(prompt) ?? [];
  return { ...(name !== undefined && { name }), ...(from !== undefined && { from }), message: body };
}

/** Origins of turns begun by Claude Code itself, or by prompts of this server. */
const OWN: ReadonlySet<string> = new Set([
  "auto-continuation",
  "observer",
  "observer-activity",
  "task-notification",
  "unclassified",
]);

/** Names the origin of a turn begun by neither this server nor the session itself. */
export function describeForeignOrigin(origin: SDKMessageOrigin | undefined): string | undefined {
  if (!origin || OWN.has(origin.kind)) return undefined;
  if (origin.kind === "channel") return `the MCP server ${origin.server}`;
  if (origin.kind !== "peer") return origin.kind;
  // Only a subagent of the session has a task.
  if (origin.senderTaskId !== undefined) return undefined;
  return `another session, ${origin.name ?? "without a name"} (${origin.from})`;
}
