// Background tasks: shells and subagents. The model is notified of the end of each task.
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiError } from "./api.mjs";
import { Conversation } from "./conversation.mjs";
import { shell } from "./shell.mjs";

const letters = (length) => randomBytes(length).toString("hex").slice(0, length);

export class Tasks {
  #session;
  #tasks = new Map();

  constructor(session) {
    this.#session = session;
  }

  /** True while subagents run: only they keep the session from being idle, shells do not. */
  get areAgentsRunning() {
    return [...this.#tasks.values()].some(({ type }) => type === "local_agent");
  }

  #fileOf(id) {
    const { cwd, sessionId } = this.#session;
    const folder = join(
      tmpdir(),
      `claude-${String(process.getuid?.() ?? 0)}`,
      cwd.replaceAll(/[^a-zA-Z0-9]/g, "-"),
      sessionId,
      "tasks",
    );
    mkdirSync(folder, { recursive: true });
    return join(folder, `${id}.output`);
  }

  #begin(id, task, more) {
    const entry = {
      id,
      run: `0${Date.now().toString(36)}-${letters(8)}`,
      file: this.#fileOf(id),
      stop: new AbortController(),
      ...task,
    };
    this.#tasks.set(id, entry);
    this.#tellAll();
    const { description, run, toolUseId, type } = entry;
    this.#emit("task_started", {
      task_id: id,
      run_id: run,
      tool_use_id: toolUseId,
      description,
      is_backgrounded: true,
      task_type: type,
      ...more,
    });
    return entry;
  }

  #emit(subtype, more) {
    this.#session.emit({ type: "system", subtype, ...more });
  }

  #tellAll() {
    const tasks = [...this.#tasks.values()].map(({ agentType, description, id, run, type }) => {
      return { task_id: id, run_id: run, task_type: type, ...(agentType && { subagent_type: agentType }), description };
    });
    this.#emit("background_tasks_changed", { tasks });
  }

  /** Ends a task. `status`: outcome. `summary`: text of the notification. */
  #end({ file, id, run, toolUseId, type, usage }, status, summary) {
    if (!this.#tasks.delete(id)) return;
    const updated = status === "stopped" ? "killed" : status;
    this.#emit("task_updated", { task_id: id, run_id: run, patch: { status: updated, end_time: Date.now() } });
    const told = { task_id: id, run_id: run, tool_use_id: toolUseId, status, output_file: file, summary };
    const report = type === "local_agent" && status === "completed" && { summary_is_report: true };
    this.#emit("task_notification", { ...told, ...report, ...(usage && status !== "failed" && { usage }) });
    this.#tellAll();
    // The caller of `stop` for a shell already knows its end.
    const isTold = status !== "stopped" || type === "local_agent";
    this.#session.taskEnded(
      isTold
        ? {
            id,
            run,
            text: `<task-notification>\n<task-id>${id}</task-id>\n<status>${status}</status>\n<summary>${summary}</summary>\n</task-notification>`,
          }
        : undefined,
    );
  }

  shell({ command, description }, { call, cwd }) {
    const id = `b${letters(8)}`;
    const name = description ?? command;
    const task = this.#begin(id, { type: "local_bash", description: name, toolUseId: call.id });
    const running = shell(command, cwd, task.stop.signal);
    task.output = () => running.output;
    void this.#follow(task, running);
    const content = `Command running in background with ID: ${id}. Output is being written to: ${task.file}. You will be notified when it completes. To check interim output, use Read on that file path.`;
    const output = {
      stdout: "",
      stderr: "",
      interrupted: false,
      isImage: false,
      noOutputExpected: false,
      backgroundTaskId: id,
    };
    return { content, output, isError: false };
  }

  async #follow(task, running) {
    const code = await running.ended;
    writeFileSync(task.file, running.output);
    const { description: name, stop } = task;
    if (stop.signal.aborted) return this.#end(task, "stopped", name);
    const [status, how] = code === 0 ? ["completed", "(exit code 0)"] : ["failed", `with exit code ${String(code)}`];
    return this.#end(task, status, `Background command "${name}" ${status} ${how}`);
  }

  async agent(input, { call, signal }) {
    const { description, prompt, run_in_background: isBehind = true, subagent_type: type = "general-purpose" } = input;
    const id = `a${letters(16)}`;
    const conversation = new Conversation(this.#session, { id, description, type, toolUseId: call.id });
    conversation.messages.push({ role: "user", content: [{ type: "text", text: prompt }] });
    if (!isBehind)
      return {
        content: [{ type: "text", text: await this.#run(conversation, signal) }],
        output: { status: "completed", agentId: id },
      };
    const more = { subagent_type: type, spawn_depth: 1, prompt };
    const task = this.#begin(id, { type: "local_agent", agentType: type, description, toolUseId: call.id }, more);
    task.output = () => "";
    task.usage = { total_tokens: 0, tool_uses: 0, duration_ms: 0 };
    void this.#run(conversation, task.stop.signal, task).then(
      (text) => this.#end(task, "completed", text),
      (error) =>
        this.#end(
          task,
          task.stop.signal.aborted ? "stopped" : "failed",
          task.stop.signal.aborted ? description : failure(error, conversation),
        ),
    );
    const about = {
      isAsync: true,
      status: "async_launched",
      agentId: id,
      description,
      resolvedModel: this.#session.model,
    };
    const output = { ...about, prompt, outputFile: task.file, canReadOutputFile: true, canContinueAgent: true };
    return { content: [{ type: "text", text: launched(id, task.file) }], output };
  }

  /** Resolves with the last text of the subagent. */
  async #run(conversation, signal, task) {
    for (;;) {
      const { content, usage } = await conversation.answer(signal);
      const calls = content.filter(({ type }) => type === "tool_use");
      if (task) count(task.usage, usage, calls);
      if (calls.length === 0) return content.findLast(({ type }) => type === "text")?.text ?? "";
      const last = calls.at(-1);
      if (task) {
        const { agentType, id, run, toolUseId } = task;
        const about = { task_id: id, run_id: run, tool_use_id: toolUseId, subagent_type: agentType };
        this.#emit("task_progress", { ...about, description: `${last.name}`, last_tool_name: last.name });
      }
      await conversation.useAll(calls, signal);
    }
  }

  stop(id) {
    this.#tasks.get(id)?.stop.abort();
  }

  /** Stops subagents; an interrupt of the user leaves shells running. */
  stopAgents() {
    for (const { stop, type } of this.#tasks.values()) if (type === "local_agent") stop.abort();
  }

  outputOf(id) {
    const task = this.#tasks.get(id);
    if (!task) throw new Error(`No task found with ID: ${id}`);
    const output = task.output();
    return { output, total_bytes: Buffer.byteLength(output), truncated: false };
  }
}

/** Returns the text about a subagent that has failed. */
function failure(error, conversation) {
  if (!(error instanceof ApiError)) return String(error.message);
  conversation.refused(error);
  const { kind, requestId, status, text } = error;
  const about = `error type ${kind}, HTTP ${status}, request id ${requestId}, model sent to the API: ${conversation.session.model}`;
  return `Agent terminated early due to an API error: ${text} (${about})`;
}

/** Adds the tokens of the last request, and the tool uses. */
function count(sum, usage, calls) {
  sum.total_tokens =
    usage.input_tokens + usage.output_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
  sum.tool_uses += calls.length;
}

const launched = (id, file) =>
  `Async agent launched successfully. (This tool result is internal metadata — never quote or paste any part of it, including the agentId below, into a user-facing reply.)
agentId: ${id} (internal ID - do not mention to user. Use SendMessage with to: '${id}', summary: '<5-10 word recap>' to continue this agent.)
The agent is working in the background. You will be notified automatically when it completes. You know nothing about its results until that notification arrives — do not report, assume, or predict them; continue other work or respond to the user in the meantime.
Do not duplicate this agent's work — avoid working with the same files or topics it is using.
output_file: ${file}
Do NOT Read or tail this file via the shell tool — it is the full subagent JSONL transcript and reading it will overflow your context. If the user asks for progress, say the agent is still running; you'll get a completion notification.`;
