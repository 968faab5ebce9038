import type { CommandReading, ShellCommand } from "./shell-command.ts";

/**
 * Reads the command of a text for PowerShell. Only a plain command is read, because PowerShell quotes and expands unlike Bash.
 */

const MAX_LENGTH = 2_000;
const WORD = /'[^'\n\r\u2018-\u201f]*'|[\w./\\:=@,+-]+/g;

export function readPowerShell(text: string): CommandReading {
  const words = text.slice(0, MAX_LENGTH).match(WORD) ?? [];
  const isPlain =
    text.length <= MAX_LENGTH &&
    text
      .trim()
      .split(/[ \t]+/)
      .join(" ") === words.join(" ");
  const [program = "", ...args] = words.map((word) => word.replace(/^'(.*)'$/, "$1"));
  if (!isPlain || words[0]?.startsWith("'") || !/^[a-z][\w-]*(?:\.exe)?$/i.test(program))
    return { commands: [], problem: "it is not a plain command" };
  const name = program.toLowerCase().replace(/\.exe$/, "");
  const names = [program, name, ...(ALIASES.get(name) ?? [])];
  const commands = names.map((each): ShellCommand => [each, ...args]);
  return { commands, problem: RUNS_OTHERS.test(name) ? `${name} can run another command` : undefined };
}

/** Built-in aliases of cmdlets that a deny rule may name. */
const ALIASES: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    "Copy-Item": "copy cp cpi",
    "Get-Content": "cat gc type",
    "Get-ChildItem": "dir gci ls",
    "Invoke-WebRequest": "curl iwr wget",
    "Move-Item": "mi move mv",
    "Remove-Item": "del erase rd ri rm rmdir",
    "Rename-Item": "ren rni",
    "Stop-Process": "kill spps",
  }).flatMap(([name, aliases]) =>
    [name.toLowerCase(), ...aliases.split(" ")].map((alias): [string, string[]] => [
      alias,
      [name, ...aliases.split(" ")],
    ]),
  ),
);

const RUNS_OTHERS =
  /^(?:add-|bash|cmd$|conhost|cscript|explorer|forfiles|foreach|git|icm$|iex$|ii$|import-|invoke-|ipmo|measure-|mshta|msbuild|nal$|new-|node|npm|npx|perl|powershell|pwsh|py|python|register-|regsvr32|ruby|rundll32|sajb|sal$|saps|sc$|schtasks|set-|sh$|start|trace-|use-|where-object|wmic|wscript|wsl|wt$)/;
