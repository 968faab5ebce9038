/** Claude Code's own tools, as far as known here. `system/init` lists the real tools of a session. */

export interface KnownTool {
  readonly name: string;
  readonly category: string;
  readonly description: string;
}

const BY_CATEGORY: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  files: {
    Read: "read a file: text, image, PDF or notebook",
    Write: "write a whole file",
    Edit: "replace text in a file",
    MultiEdit: "make several replacements in one file",
    NotebookEdit: "change a cell of a notebook",
    NotebookRead: "read a notebook",
    LS: "list a folder",
    Artifact: "publish a web page made of files",
  },
  search: {
    Glob: "find files by name",
    Grep: "find text in files",
    LSP: "ask a language server: definitions, references, symbols",
    ToolSearch: "load tools that are listed by name only",
  },
  shell: {
    Bash: "run a shell command, also in the background",
    PowerShell: "run a PowerShell command",
    REPL: "run code in an interpreter that keeps its state",
    BashOutput: "read the output of a background shell",
    KillShell: "end a background shell",
    Monitor: "watch the output of a command in the background",
    TaskOutput: "read the output of background work",
    TaskStop: "end background work",
  },
  web: {
    WebFetch: "read a web page",
    WebSearch: "search the web",
    SandboxNetworkAccess: "connect a command in the sandbox to a host",
  },
  agents: {
    Agent: "give a task to a subagent",
    ListAgents: "list running agents",
    SendMessage: "write to a running agent",
    SendUserMessage: "write to the user",
    TeamCreate: "make a team of agents",
    TeamDelete: "dissolve a team of agents",
    Workflow: "run a script of several agents",
    Skill: "run a skill",
    SlashCommand: "run a slash command",
  },
  planning: {
    EnterPlanMode: "plan before anything is changed",
    ExitPlanMode: "show the plan and ask for approval",
    EnterWorktree: "continue in a separate git worktree",
    ExitWorktree: "leave the git worktree",
    TodoWrite: "keep a list of steps",
    TaskCreate: "add a step to the list",
    TaskGet: "look at a step",
    TaskList: "list the steps",
    TaskUpdate: "change a step",
  },
  scheduling: {
    CronCreate: "run a prompt at set times",
    CronDelete: "remove a scheduled prompt",
    CronList: "list scheduled prompts",
    RemoteTrigger: "start an agent elsewhere",
    ScheduleWakeup: "continue by itself later",
  },
  interaction: {
    AskUserQuestion: "ask the user to choose",
    PushNotification: "notify the user",
    ReportFindings: "report the findings of a review",
    SendFeedback: "send feedback on Claude Code",
    SendUserFile: "send a file to the user",
    StructuredOutput: "give the result in the requested form",
  },
  mcp: {
    ListMcpResourcesTool: "list resources of MCP servers",
    ReadMcpResourceTool: "read a resource of an MCP server",
    ReadMcpResourceDirTool: "list a folder of resources of an MCP server",
    RefreshMcpTools: "reload the tools of an MCP server",
  },
};

export const KNOWN_TOOLS: readonly KnownTool[] = Object.entries(BY_CATEGORY).flatMap(([category, tools]) =>
  Object.entries(tools).map(([name, description]) => ({ name, category, description })),
);

/** Former names of tools, which rules may still use. Claude Code itself still uses one of them in `system/init`. */
const FORMER_NAMES = new Map([
  ["task", "agent"],
  ["killbash", "killshell"],
]);

const BY_NAME = new Map(KNOWN_TOOLS.map((tool) => [tool.name.toLowerCase(), tool]));

/** Finds a tool under its present or former name, ignoring case. */
export function knownTool(name: string): KnownTool | undefined {
  const asked = name.toLowerCase();
  return BY_NAME.get(FORMER_NAMES.get(asked) ?? asked);
}

/** Describes a tool of a session, known or not. */
export function describeTool(name: string): { name: string; category: string; description?: string } {
  return knownTool(name) ?? { name, category: name.startsWith("mcp__") ? "mcp" : "other" };
}
