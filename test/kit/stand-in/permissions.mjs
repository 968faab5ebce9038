// Decides on a tool use: by hook, rule or mode, or by asking an approver.
import { isAbsolute, relative, resolve } from "node:path";
import { homedir } from "node:os";

const LOOKS = new Set(
  "ls cat head tail wc echo pwd true false test [ : git grep find which date whoami id sort uniq sleep printf cd uname stat basename dirname".split(
    " ",
  ),
);
const EDITS = new Set("mkdir touch rm rmdir mv cp sed".split(" "));
const GIT_LOOKS = new Set(["status", "log", "diff", "show", "branch", "rev-parse"]);

function isIn(folder, path) {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith("..") && !isAbsolute(way));
}

function isInside(path, { cwd, folders }) {
  const place = resolve(cwd, path);
  return [cwd, ...folders].some((folder) => isIn(folder, place));
}

/** Redirections that write no file. */
const HARMLESS = /\d?>&\d|\d?>\s*\/dev\/null/g;
const KEYWORDS = new Set("! do done elif else fi if then until while".split(" "));

/** Splits a line into commands of words; `undefined` if the line is more than plain commands. */
function commandsIn(line) {
  const text = line.replaceAll(HARMLESS, "");
  if (/[`$<>]|\bfor\b/.test(text)) return undefined;
  return text
    .split(/&&|\|\||[;|&\n]/)
    .map((part) => wordsOf(part.trim().split(/\s+/)))
    .filter(([program = ""]) => program !== "");
}

/** Removes leading `KEYWORDS`, which do not change the command itself. */
function wordsOf(words) {
  const at = words.findIndex((word) => !KEYWORDS.has(word));
  return at < 0 ? [] : words.slice(at);
}

function isPlain(words, known, places) {
  const [program, ...rest] = words.map((word) => word.replaceAll(/^['"]|['"]$/g, ""));
  if (!known.has(program) || (program === "git" && !GIT_LOOKS.has(rest[0]))) return false;
  if (program === "find" && rest.some((word) => /^-(exec|delete|ok)/.test(word))) return false;
  return (
    ["echo", "printf"].includes(program) ||
    rest.filter((word) => /^[/~.]/.test(word)).every((word) => !word.startsWith("~") && isInside(word, places))
  );
}

function isUnasked(command, known, places) {
  const commands = commandsIn(command);
  return commands !== undefined && commands.every((words) => isPlain(words, known, places));
}

function matchesCommand(content, command) {
  const prefix = content.endsWith(":*")
    ? content.slice(0, -2)
    : content.endsWith(" *")
      ? content.slice(0, -2)
      : undefined;
  if (prefix !== undefined) return command === prefix || command.startsWith(`${prefix} `);
  const pattern = content
    .split("*")
    .map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`))
    .join("[^]*");
  return new RegExp(`^${pattern}$`).test(command);
}

function matchesPath(content, path, { cwd }) {
  const base = content.startsWith("//")
    ? content.slice(1)
    : content.startsWith("~/")
      ? resolve(homedir(), content.slice(2))
      : resolve(cwd, content.replace(/^\//, ""));
  const place = resolve(cwd, path);
  if (!base.includes("*")) return isIn(base, place);
  const pattern = base
    .split(/(\*\*|\*)/)
    .map((part) =>
      part === "**" ? ".*" : part === "*" ? "[^/]*" : part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`),
    )
    .join("");
  return new RegExp(`^${pattern}$`).test(place);
}

/** Rules for Edit apply to Write and NotebookEdit, rules for Agent to Task. */
const FAMILY = { Write: "Edit", NotebookEdit: "Edit", Task: "Agent" };

function matches(rule, { input, name, path }, places) {
  const [tool, ...rest] = rule.split("(");
  if (tool !== name && tool !== FAMILY[name]) return false;
  const content = rest.join("(").slice(0, -1);
  if (content === "" || content === "*") return true;
  if (name === "Bash") return matchesCommand(content, input.command);
  return path !== undefined && matchesPath(content, path, places);
}

export class Permissions {
  mode;
  #rules;
  #places;

  /** File that the model may write without a request in plan mode. */
  #planFile;

  constructor({ allowed, disallowed, folders, permissionMode, settings }, { cwd, planFile }) {
    this.#planFile = planFile;
    this.mode = permissionMode;
    const { allow = [], ask = [], deny = [] } = settings.permissions ?? {};
    this.#rules = { allow: [...allowed, ...allow], ask, deny: [...disallowed, ...deny] };
    this.#places = { cwd, folders: [...folders] };
  }

  get deny() {
    return this.#rules.deny;
  }

  /** True if a rule denies the tool by name: the model is not offered the tool. */
  hides(name) {
    return this.#rules.deny.some((rule) => rule === name || (rule === "Task" && name === "Agent"));
  }

  /** Applies the updates of a remembered answer. */
  update(updates = []) {
    for (const update of updates) {
      if (update.type === "setMode") this.mode = update.mode;
      if (update.type === "addDirectories") this.#places.folders.push(...update.directories);
      if (update.type === "addRules") {
        const rules = update.rules.map(({ ruleContent, toolName }) =>
          ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`,
        );
        // The project's own settings file is not read again here.
        if (update.destination === "session") this.#rules[update.behavior].push(...rules);
      }
    }
  }

  /** Returns `{ allow: reason }`, `{ deny: message, why }` or `{ ask: fields of the request }`. `hook`: decision of a hook. */
  decide(use, hook) {
    const has = (kind) => this.#rules[kind].some((rule) => matches(rule, use, this.#places));
    if (has("deny")) return { deny: deniedByRule(use), why: "rule" };
    if (use.tool.isFree) return { allow: "mode" };
    const isAsked = use.tool.asksAlways === true || hook !== undefined || has("ask");
    const allow = isAsked ? undefined : this.#unasked(use, has("allow"));
    if (allow !== undefined) return { allow };
    if (this.mode === "dontAsk") return { deny: deniedByMode(use.name), why: "mode" };
    const why = hook === undefined ? {} : { decision_reason: hook, decision_reason_type: "hook" };
    return { ask: { ...this.#question(use), ...why } };
  }

  /** Returns the reason to run the tool without a request. */
  #unasked(use, isAllowed) {
    const isCommand = use.name === "Bash";
    if (this.mode === "bypassPermissions") return "mode";
    if (isAllowed) return isCommand && !this.#rules.allow.includes("Bash") ? "subcommandResults" : "rule";
    if (!this.#mayRun(use)) return undefined;
    if (isCommand) return "subcommandResults";
    return this.#isPlan(use) ? "other" : "mode";
  }

  #isPlan({ path }) {
    return this.mode === "plan" && path !== undefined && resolve(this.#places.cwd, path) === this.#planFile;
  }

  #mayRun(use) {
    const { input, name, path, tool } = use;
    const places = this.#places;
    const edits = this.mode === "acceptEdits";
    if (name === "Read") return isInside(path, places) || this.mode === "plan";
    if (this.#isPlan(use)) return true;
    if (tool.isEdit)
      return edits && isInside(path, places) && !/\/\.(?:claude|git|vscode|idea)\//.test(resolve(places.cwd, path));
    const known = edits ? new Set([...LOOKS, ...EDITS]) : LOOKS;
    return name === "Bash" && isUnasked(input.command, known, places);
  }

  #question({ input, name, path, tool }) {
    const { cwd } = this.#places;
    const accept = { type: "setMode", mode: "acceptEdits", destination: "session" };
    if (tool.asksAlways) return {};
    if (name === "Read") {
      const rule = { toolName: "Read", ruleContent: `/${resolve(cwd, path, "..")}/**` };
      return {
        permission_suggestions: [{ type: "addRules", rules: [rule], behavior: "allow", destination: "session" }],
        decision_reason: "Path is outside allowed working directories",
        decision_reason_type: "workingDir",
      };
    }
    if (tool.isEdit) {
      const folder = resolve(cwd, path, "..");
      const add = { type: "addDirectories", directories: [folder], destination: "session" };
      return { permission_suggestions: isInside(path, this.#places) ? [accept] : [accept, add] };
    }
    return this.#aboutCommand(input.command, accept);
  }

  #aboutCommand(command, accept) {
    const { cwd } = this.#places;
    const [words, ...more] = commandsIn(command) ?? [];
    const rule = (ruleContent) => ({
      type: "addRules",
      rules: [{ toolName: "Bash", ruleContent }],
      behavior: "allow",
      destination: "localSettings",
    });
    const isEdit = words !== undefined && more.length === 0 && EDITS.has(words[0]) && words.length > 1;
    if (!isEdit) return { permission_suggestions: [rule(command)] };
    const blocked = resolve(cwd, words.at(-1));
    const add = { type: "addDirectories", directories: [resolve(blocked, "..")], destination: "session" };
    return { permission_suggestions: [rule(`${command} *`), add, accept], blocked_path: blocked };
  }
}

function deniedByRule({ input, name, path }) {
  if (name === "Bash") return `Permission to use Bash with command ${input.command} has been denied.`;
  if (path !== undefined) return "File is in a directory that is denied by your permission settings.";
  return `Permission to use ${name} has been denied.`;
}

const ADVICE =
  "IMPORTANT: You *may* attempt to accomplish this action using other tools that might naturally be used to accomplish this goal, e.g. using head instead of cat. But you *should not* attempt to work around this denial in malicious ways, e.g. do not use your ability to run tests to execute non-test actions. You should only try to work around this restriction in reasonable ways that do not attempt to bypass the intent behind this denial. If you believe this capability is essential to complete the user's request, STOP and explain to the user what you were trying to do and why you need this permission. Let the user decide how to proceed.";

function deniedByMode(name) {
  return `Permission to use ${name} has been denied because Claude Code is running in don't ask mode. ${ADVICE}`;
}
