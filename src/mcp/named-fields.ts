import type { McpServer } from "@modelcontextprotocol/server";

/**
 * Replaces the SDK's errors for invalid parameters: a JSON list of issues, some with the code of an internal error. Clients get
 * the code for invalid params, and the names of the fields in words.
 */

type Transport = Parameters<McpServer["connect"]>[0];
type Message = Parameters<Transport["send"]>[0];

const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;

/** Maximum number of reported problems, because one wrong value may break several rules. */
const MAX_NAMED = 3;

/** Rewrites errors on each transport that `server` connects to from now on. */
export function nameFields(server: McpServer): void {
  const connect = server.connect.bind(server);
  server.connect = async (transport) => {
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => send(withFieldNames(message), options);
    return connect(transport);
  };
}

function withFieldNames(message: Message): Message {
  if (!("error" in message)) return message;
  const { code, message: text } = message.error;
  if (code !== INVALID_PARAMS && code !== INTERNAL_ERROR) return message;
  const problems = problemsIn(text);
  if (problems.length === 0) return message;
  const named = `Invalid params: ${problems.slice(0, MAX_NAMED).join("; ")}.`;
  return { ...message, error: { ...message.error, code: INVALID_PARAMS, message: named } };
}

/** Returns the problems of a JSON list of issues, an empty list for other text. */
function problemsIn(text: string): string[] {
  try {
    const issues: unknown = JSON.parse(text.slice(text.indexOf("[")));
    return Array.isArray(issues) ? issues.flatMap((issue) => problemOf(issue)) : [];
  } catch {
    return [];
  }
}

function problemOf(issue: unknown): string[] {
  if (typeof issue !== "object" || issue === null || !("path" in issue && "message" in issue)) return [];
  const { message, path } = issue;
  if (!Array.isArray(path) || typeof message !== "string") return [];
  return [`${path.join(".")}: ${message.replace(/^Invalid input: /, "")}`];
}
