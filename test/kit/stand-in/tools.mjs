// Tools that scripts call, as far as tests can see their effects.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { patchOf } from "./patch.mjs";
import { shell } from "./shell.mjs";

/** Failure of a tool; `message` is its result for the model. */
export class ToolError extends Error {
  /** `isUse`: the tool was called wrongly, before an approver was asked. */
  constructor(message, { isUse = false } = {}) {
    super(message);
    this.isUse = isUse;
  }
}

const FRESH = "(file state is current in your context — no need to Read it back)";
const WITHOUT_OUTPUT = new Set([
  "mv",
  "cp",
  "rm",
  "mkdir",
  "rmdir",
  "chmod",
  "chown",
  "chgrp",
  "touch",
  "ln",
  "cd",
  "export",
  "unset",
  "wait",
]);

const missing = ({ cwd }) => `File does not exist. Note: your current working directory is ${cwd}.`;

function textOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** `known`: files whose present content the model has read. */
const Read = {
  needs: ["file_path"],
  isConcurrent: true,
  path: ({ file_path: path }) => path,
  run({ file_path: path, limit, offset = 1 }, context) {
    const text = textOf(resolve(context.cwd, path));
    if (text === undefined) throw new ToolError(missing(context));
    context.known.add(resolve(context.cwd, path));
    const all = text.split("\n");
    const lines = all.slice(offset - 1, limit === undefined ? undefined : offset - 1 + limit);
    const content = lines.map((line, at) => `${String(offset + at)}\t${line}`).join("\n");
    const file = {
      filePath: path,
      content: lines.join("\n"),
      numLines: lines.length,
      startLine: offset,
      totalLines: all.length,
    };
    return { content, output: { type: "text", file } };
  },
};

const Write = {
  needs: ["file_path", "content"],
  isEdit: true,
  path: ({ file_path: path }) => path,
  check({ file_path: path }, context) {
    const place = resolve(context.cwd, path);
    if (textOf(place) !== undefined && !context.known.has(place)) throw new ToolError(UNREAD, { isUse: true });
  },
  run({ content, file_path: path }, context) {
    const place = resolve(context.cwd, path);
    const originalFile = textOf(place) ?? null;
    context.keep(place, originalFile);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, content);
    context.known.add(place);
    const structuredPatch = originalFile === null ? [] : patchOf(originalFile, content);
    // For a new file with a final line break, Claude Code counts one line too many.
    const added = content.split("\n").map((line) => `+${line}`);
    context.count(originalFile === null ? [{ lines: added }] : structuredPatch);
    const type = originalFile === null ? "create" : "update";
    const output = { type, filePath: path, content, structuredPatch, originalFile, userModified: false };
    if (type === "create") return { content: `File created successfully at: ${path} ${FRESH}`, output };
    return { content: `The file ${path} has been updated successfully. ${FRESH}`, output };
  },
};

const UNREAD = "File has not been read yet. Read it first before writing to it.";

const Edit = {
  needs: ["file_path", "old_string", "new_string"],
  isEdit: true,
  path: ({ file_path: path }) => path,
  normal: (input) => ({ replace_all: false, ...input }),
  check({ file_path: path, old_string: old }, context) {
    const place = resolve(context.cwd, path);
    const text = textOf(place);
    if (text === undefined) throw new ToolError(missing(context), { isUse: true });
    if (!context.known.has(place)) throw new ToolError(UNREAD, { isUse: true });
    if (!text.includes(old))
      throw new ToolError(`String to replace not found in file.\nString: ${old}`, { isUse: true });
  },
  run({ file_path: path, new_string: newString, old_string: oldString, replace_all: replaceAll }, context) {
    const place = resolve(context.cwd, path);
    const originalFile = textOf(place) ?? "";
    context.keep(place, originalFile);
    const changed = replaceAll
      ? originalFile.replaceAll(oldString, () => newString)
      : originalFile.replace(oldString, () => newString);
    writeFileSync(place, changed);
    const structuredPatch = patchOf(originalFile, changed);
    context.count(structuredPatch);
    const output = {
      filePath: path,
      oldString,
      newString,
      originalFile,
      structuredPatch,
      userModified: false,
      replaceAll,
    };
    return { content: `The file ${path} has been updated successfully. ${FRESH}`, output };
  },
};

const DEFAULT_TIMEOUT_MS = 120_000;

const Bash = {
  needs: ["command"],
  async run(input, context) {
    if (input.run_in_background === true) return context.tasks.shell(input, context);
    const { command, timeout = DEFAULT_TIMEOUT_MS } = input;
    const late = AbortSignal.timeout(timeout);
    const running = shell(command, context.cwd, AbortSignal.any([context.signal, late]));
    const code = await running.ended;
    context.signal.throwIfAborted();
    const stdout = running.output.replace(/\n+$/, "");
    if (code !== 0)
      throw new ToolError(
        late.aborted
          ? `Command timed out after ${String(timeout / 1000)}s\n${stdout}`
          : `Exit code ${String(code)}${stdout && "\n"}${stdout}`,
      );
    const [program = ""] = command.trim().split(/\s/);
    const output = {
      stdout,
      stderr: "",
      interrupted: false,
      isImage: false,
      noOutputExpected: WITHOUT_OUTPUT.has(program),
    };
    return { content: stdout === "" ? "(Bash completed with no output)" : stdout, output, isError: false };
  },
};

const AskUserQuestion = {
  needs: ["questions"],
  asksAlways: true,
  normal: ({ questions, ...rest }) => ({
    questions: questions.map((each) => ({ multiSelect: false, ...each })),
    ...rest,
  }),
  run({ answers = {}, questions, ...rest }) {
    const said = Object.entries(answers).map(([question, answer]) => `"${question}"="${[answer].flat().join(", ")}"`);
    const content =
      said.length === 0
        ? "The user did not answer the questions."
        : `Your questions have been answered: ${said.join(", ")}. You can now continue with these answers in mind.`;
    return { content, output: { questions, answers, ...rest }, isUnmarked: true };
  },
};

const ExitPlanMode = {
  needs: [],
  /** The plan comes from `planFile`; the model's input is ignored. */
  normal(_input, { planFile }) {
    const plan = textOf(planFile);
    return plan === undefined ? {} : { plan, planFilePath: planFile };
  },
  asksAlways: true,
  check(_input, { mode }) {
    if (mode() !== "plan")
      throw new ToolError(
        "You are not in plan mode. This tool is only for exiting plan mode after writing a plan. If your plan was already approved, continue with implementation.",
        { isUse: true },
      );
  },
  run(input, context) {
    context.leavePlan();
    const { plan } = input;
    return {
      content:
        plan === undefined ? "User has approved exiting plan mode. You can now proceed." : approved(plan, context),
      output: { plan: input.plan ?? null, isAgent: false, filePath: context.planFile },
      isUnmarked: true,
    };
  },
};

const approved = (plan, { planFile }) =>
  `User has approved your plan. You can now start coding. Start with updating your todo list if applicable

Your plan has been saved to: ${planFile}
You can refer back to it if needed during implementation.

## Approved Plan:
${plan}`;

const StructuredOutput = {
  needs: [],
  isFree: true,
  run: (input, context) => {
    context.structured(input);
    return { content: "Structured output provided successfully", output: "Structured output provided successfully" };
  },
};

const AgentTool = {
  needs: ["description", "prompt"],
  isFree: true,
  isConcurrent: true,
  run: (input, context) => context.tasks.agent(input, context),
};

const Skill = {
  needs: ["skill"],
  isFree: true,
  run: ({ skill }) => ({ content: `Launching skill: ${skill}`, output: { success: true } }),
};

/** Tools that scripts call. The rest of `NAMES` is listed, but not implemented. */
const TOOLS = { Agent: AgentTool, AskUserQuestion, Bash, Edit, ExitPlanMode, Read, Skill, StructuredOutput, Write };

export const NAMES =
  "Task AskUserQuestion Bash CronCreate CronDelete CronList Edit EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write".split(
    " ",
  );

/** Returns the tool after a check of its input. Throws `ToolError`. */
export function toolFor({ input, name }, context) {
  const tool = context.hasTool(name) ? TOOLS[name] : undefined;
  if (!tool) throw new ToolError(`Error: No such tool available: ${name}`, { isUse: true });
  const [lacking] = tool.needs.filter((field) => input[field] === undefined);
  if (lacking !== undefined)
    throw new ToolError(
      `InputValidationError: ${name} failed due to the following issue:\nThe required parameter \`${lacking}\` is missing`,
      { isUse: true },
    );
  tool.check?.(input, context);
  return tool;
}

/** Returns `input` as Claude Code reports it: with defaults. */
export function normalInput(name, input, session) {
  return TOOLS[name]?.normal?.(input, session) ?? input;
}

export function isConcurrent(name) {
  return TOOLS[name]?.isConcurrent === true;
}
