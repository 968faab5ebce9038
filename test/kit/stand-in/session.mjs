// A session: runs its prompts turn by turn and emits the messages about them.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Account } from "./account.mjs";
import { Checkpoints } from "./checkpoints.mjs";
import { Conversation } from "./conversation.mjs";
import { initOf } from "./init.mjs";
import { Permissions } from "./permissions.mjs";
import { PlanReports } from "./plan.mjs";
import { modelOf } from "./settings.mjs";
import { Tasks } from "./tasks.mjs";
import { NAMES } from "./tools.mjs";
import { CONFIG, fileOf, messagesOf, read, Transcript } from "./transcript.mjs";
import { Turn } from "./turn.mjs";
import { write } from "./wire.mjs";

const MID_TURN = "The user sent a new message while you were working:\n";

export class Session {
  settings;
  cwd = process.cwd();
  sessionId;
  model;
  systemPrompt = "You are Claude Code, as tests have it.";
  hooks = {};
  account = new Account();
  checkpoints = new Checkpoints();
  plan = new PlanReports((event) => this.emit(event));
  planFile;
  /** Tool uses refused in the current turn. */
  denials = [];
  transcript;
  permissions;
  tasks;
  main;
  results = 0;
  hasFailed = false;
  #known = new Set();
  #seen = new Set();
  #queue = [];
  #turn;
  #state = "idle";
  #asking = 0;
  #mode;

  constructor(settings) {
    this.settings = settings;
    this.model = modelOf(settings.model);
    this.sessionId =
      settings.fork || settings.resume === undefined ? (settings.sessionId ?? randomUUID()) : settings.resume;
    this.planFile = join(CONFIG, "plans", `${this.sessionId}.md`);
    this.permissions = new Permissions(settings, this);
    this.#mode = settings.permissionMode;
    this.tasks = new Tasks(this);
    this.main = new Conversation(this);
    this.transcript = new Transcript({ cwd: this.cwd, persist: settings.persist, sessionId: this.sessionId });
    this.#resume();
  }

  #resume() {
    const { fork, persist, resume, resumeAt } = this.settings;
    if (resume === undefined) return;
    const { account, branch, file } = read(resume, resumeAt);
    if (fork)
      for (const { message, promptId, type, uuid } of branch)
        this.transcript.message(type, uuid, message, promptId && { promptId });
    else this.transcript = new Transcript({ cwd: this.cwd, file, persist, sessionId: this.sessionId });
    this.transcript.goOnFrom(branch.at(-1)?.uuid ?? null);
    for (const { promptId } of branch) if (promptId !== undefined) this.#seen.add(promptId);
    this.main.messages = messagesOf(branch);
    // A fork starts its own count.
    if (!fork) Object.assign(this.account, account);
    if (this.settings.runsAgain) this.#runAgain(branch);
  }

  #runAgain(branch) {
    const prompt = branch.findLast(({ promptId }) => promptId !== undefined)?.promptId;
    const calls = this.main.messages.at(-1);
    if (prompt === undefined) return;
    if (calls?.role === "assistant") {
      const lost = calls.content.filter(({ type }) => type === "tool_use");
      if (lost.length > 0) this.main.messages.pop();
    }
    this.#queue.push({ kind: "again", uuid: prompt });
  }

  emit(message) {
    write({ uuid: randomUUID(), ...message, session_id: this.sessionId });
  }

  partial(event, about, first) {
    if (this.settings.partial) this.emit({ type: "stream_event", event, ...about, ...first });
  }

  toolNames() {
    const { schema, tools } = this.settings;
    const chosen = (tools ?? NAMES).map((name) => (name === "Task" ? "Agent" : name));
    const all = [...chosen, ...(schema ? ["StructuredOutput"] : [])];
    return all.filter((name) => !this.permissions.hides(name));
  }

  hookInput() {
    const { cwd, sessionId } = this;
    return {
      session_id: sessionId,
      transcript_path: fileOf(cwd, sessionId),
      cwd,
      permission_mode: this.permissions.mode,
    };
  }

  contextOf(conversation, call, signal) {
    return {
      call,
      signal,
      cwd: this.cwd,
      known: this.#known,
      tasks: this.tasks,
      mode: () => this.permissions.mode,
      planFile: this.planFile,
      hasTool: (name) => this.toolNames().includes(name),
      keep: (place, text) => this.checkpoints.keep(place, text),
      count: (patch) => this.#countLines(patch),
      structured: (value) => (this.#turn.structured = value),
      leavePlan: () => {
        if (this.permissions.mode === "plan") this.permissions.mode = "default";
        this.toldMode();
      },
    };
  }

  #countLines(patch) {
    const lines = patch.flatMap((hunk) => hunk.lines);
    this.account.added += lines.filter((line) => line.startsWith("+")).length;
    this.account.removed += lines.filter((line) => line.startsWith("-")).length;
  }

  /** Reports the mode if changed since the last report. */
  toldMode() {
    const { mode: permissionMode } = this.permissions;
    if (permissionMode === this.#mode) return;
    this.#mode = permissionMode;
    this.emit({ type: "system", subtype: "status", status: null, permissionMode });
  }

  /** Sets the state `requires_action` while an approver is asked. */
  async waitingFor(answer) {
    this.#asking += 1;
    this.#state = "requires_action";
    this.#tellState();
    try {
      return await answer;
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#become("running");
    }
  }

  #become(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.#tellState();
  }

  #tellState() {
    this.emit({ type: "system", subtype: "session_state_changed", state: this.#state });
  }

  /** Counts a message in the user's place as part of the turn. */
  counted(conversation) {
    if (this.#turn && conversation === this.main) this.#turn.length += 1;
  }

  lifecycle({ uuid }, state) {
    if (uuid !== undefined) this.emit({ type: "command_lifecycle", command_uuid: uuid, state });
  }

  /** Queues a prompt. A prompt with a known id is not run again. */
  prompt({ message, uuid }) {
    if (uuid !== undefined && this.#seen.has(uuid))
      return this.emit({ type: "user", message, uuid, parent_tool_use_id: null, isReplay: true });
    if (uuid !== undefined) this.#seen.add(uuid);
    const item = { kind: "prompt", uuid, content: message.content };
    if (!this.#turn) this.#become("running");
    this.lifecycle(item, "queued");
    this.#queue.push(item);
    this.#next();
  }

  taskEnded(news) {
    if (news) this.#queue.push({ kind: "news", ...news, content: news.text });
    this.#next();
    if (!this.#turn) this.#rest(true);
  }

  /** True while anything runs that outlives the end of stdin. */
  get isBusy() {
    return this.#turn !== undefined || this.#queue.length > 0;
  }

  onRest = () => undefined;

  /** Starts queued work: like Claude Code, runs an unfinished turn of a resumed session again. */
  begin() {
    this.#next();
  }

  #next() {
    if (this.#turn || this.#queue.length === 0) return;
    const [first] = this.#queue;
    // Queued prompts form a single turn together; each notification forms a turn of its own.
    const items = first.kind === "prompt" ? this.#queue.filter(({ kind }) => kind === "prompt") : [first];
    this.#queue = this.#queue.filter((item) => !items.includes(item));
    void this.#run(items);
  }

  async #run(items) {
    this.#become("running");
    const turn = new Turn(this, items);
    this.#turn = turn;
    this.denials = [];
    for (const item of items) this.lifecycle(item, "started");
    const prompts = items.flatMap(({ kind, uuid }) => (kind === "news" || uuid === undefined ? [] : [uuid]));
    this.emit(initOf(this, prompts));
    for (const item of items) this.#add(item);
    await turn.run().catch((error) => {
      process.stderr.write(`${error.stack}\n`);
      process.exit(1);
    });
    this.transcript.account(this.account);
    this.#turn = undefined;
    this.#next();
    this.#rest();
  }

  #rest(isToldAgain = false) {
    if (this.#turn || this.tasks.areAgentsRunning) return;
    if (isToldAgain) this.#state = "running";
    this.#become("idle");
    this.onRest();
  }

  #add({ content, kind, uuid }) {
    // Without content, the last request is sent again as it was.
    if (kind === "again" || content.length === 0) return;
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const message = { role: "user", content: [...blocks, ...this.#reminders(kind)] };
    if (kind === "prompt") this.checkpoints.begin(uuid);
    this.main.messages.push(message);
    this.transcript.message(
      "user",
      kind === "prompt" && uuid !== undefined ? uuid : randomUUID(),
      message,
      kind === "prompt" && { promptId: uuid },
    );
  }

  #reminders(kind) {
    if (kind !== "prompt" || this.permissions.mode !== "plan") return [];
    this.transcript.attachment({ type: "plan_mode", planFilePath: this.planFile });
    const text = `<system-reminder>\nPlan mode is active. Write your plan to ${this.planFile}, and call ExitPlanMode.\n</system-reminder>`;
    return [{ type: "text", text }];
  }

  /** Adds prompts that arrived while tools ran to the turn. */
  join() {
    const items = this.#queue;
    this.#queue = [];
    for (const item of items) {
      this.lifecycle(item, "started");
      this.#add({ ...item });
      const message = this.main.messages.pop();
      const isPrompt = item.kind === "prompt";
      const [text, ...rest] = message.content;
      const joined = isPrompt
        ? { role: "system", content: [{ ...text, text: MID_TURN + (text.text ?? "") }, ...rest] }
        : message;
      this.main.messages.push(joined);
    }
    return items;
  }

  interruptTurn() {
    this.#turn?.stop.abort(new Error("interrupted"));
  }

  interrupt({ cancel_queued: isAll }) {
    const cancelled = isAll ? this.#queue.filter(({ kind }) => kind === "prompt") : [];
    this.#queue = this.#queue.filter((item) => !cancelled.includes(item));
    for (const item of cancelled) this.lifecycle(item, "cancelled");
    this.interruptTurn();
    this.tasks.stopAgents();
    return {
      still_queued: this.#queue.flatMap(({ uuid }) => uuid ?? []),
      cancelled: cancelled.map(({ uuid }) => uuid),
    };
  }
}
