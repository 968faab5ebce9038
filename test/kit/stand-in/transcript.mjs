// The transcript of a session: a JSONL file in the configuration folder, as Claude Code keeps it.
import { appendFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export const CONFIG = process.env.CLAUDE_CONFIG_DIR ?? join(process.env.HOME ?? homedir(), ".claude");
const PROJECTS = join(CONFIG, "projects");

export function projectOf(cwd) {
  return join(PROJECTS, cwd.replaceAll(/[^a-zA-Z0-9]/g, "-"));
}

export function fileOf(cwd, sessionId) {
  return join(projectOf(cwd), `${sessionId}.jsonl`);
}

function found(sessionId) {
  let projects = [];
  try {
    projects = readdirSync(PROJECTS);
  } catch {
    // No session has been stored yet.
  }
  for (const project of projects) {
    try {
      return {
        file: join(PROJECTS, project, `${sessionId}.jsonl`),
        text: readFileSync(join(PROJECTS, project, `${sessionId}.jsonl`), "utf8"),
      };
    } catch {
      // The session belongs to another project.
    }
  }
  throw new Error(`No conversation found with session ID: ${sessionId}`);
}

/** Reads the branch that ends with message `at`, or with the last message, and the account at the end of the file. */
export function read(sessionId, at) {
  const { file, text } = found(sessionId);
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const messages = lines.filter(({ type }) => type === "user" || type === "assistant");
  const byId = new Map(messages.map((line) => [line.uuid, line]));
  const last = at === undefined ? messages.at(-1) : byId.get(at);
  if (at !== undefined && !last) throw new Error(`No message found with message.uuid of: ${at}`);
  const branch = [];
  for (let line = last; line; line = byId.get(line.parentUuid)) branch.unshift(line);
  return { file, branch, account: lines.findLast(({ type }) => type === "account")?.account };
}

/** Leaves out errors of the API, which the model never sees. Joins the blocks of a message: each block of an answer and each tool result has a line of its own. */
export function messagesOf(branch) {
  const messages = [];
  let lastId;
  for (const { isApiErrorMessage, message, type: role } of branch) {
    if (isApiErrorMessage) continue;
    const { content, id } = message;
    const last = messages.at(-1);
    const isSame = last?.role === role && (role === "assistant" ? lastId === id : isResult(last) && isResult(message));
    if (isSame) last.content.push(...content);
    else messages.push({ role, content: [...content] });
    lastId = id;
  }
  return messages;
}

function isResult({ content }) {
  return content.every(({ type }) => type === "tool_result");
}

export class Transcript {
  #file;
  #sessionId;
  #cwd;
  #parent = null;

  constructor({ cwd, file, persist, sessionId }) {
    this.#file = persist ? (file ?? fileOf(cwd, sessionId)) : undefined;
    this.#sessionId = sessionId;
    this.#cwd = cwd;
  }

  goOnFrom(uuid) {
    this.#parent = uuid;
  }

  message(type, uuid, message, more = {}) {
    this.#append({ parentUuid: this.#parent, type, uuid, message, ...more });
    this.#parent = uuid;
  }

  attachment(attachment) {
    this.#append({ type: "attachment", attachment });
  }

  account({ added, apiMs, models, removed }) {
    this.#append({ type: "account", account: { added, apiMs, models, removed } });
  }

  #append(line) {
    if (this.#file === undefined) return;
    mkdirSync(join(this.#file, ".."), { recursive: true, mode: 0o700 });
    const about = { sessionId: this.#sessionId, cwd: this.#cwd, timestamp: new Date().toISOString() };
    appendFileSync(this.#file, `${JSON.stringify({ ...line, ...about })}\n`, { mode: 0o600 });
  }
}
