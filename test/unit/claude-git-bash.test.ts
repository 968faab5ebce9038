import { describe, expect, it } from "vitest";
import { checkShell, type Machine, windowsShell } from "../../src/claude/preflight/git-bash.ts";

/** Returns a machine without any files except `files`. */
function machine(
  files: string[],
  environment: Machine["environment"] = {},
  platform: NodeJS.Platform = "win32",
): Machine {
  return { platform, environment, exists: async (path) => Promise.resolve(files.includes(path)) };
}

const USUAL = "C:\\Program Files\\Git\\bin\\bash.exe";
const OFF = { CLAUDE_CODE_USE_POWERSHELL_TOOL: "0" };

describe("the shell of Claude Code on Windows", () => {
  it.each<[string, string[], Machine["environment"], string]>([
    ["in the installer's folder", [USUAL], {}, USUAL],
    [
      "at the path of the variable",
      [USUAL, "D:\\tools\\bash.exe"],
      { CLAUDE_CODE_GIT_BASH_PATH: "D:\\tools\\bash.exe" },
      "D:\\tools\\bash.exe",
    ],
    [
      "in the installer's folder, if the variable leads nowhere",
      [USUAL],
      { CLAUDE_CODE_GIT_BASH_PATH: "D:\\gone\\bash.exe" },
      USUAL,
    ],
    [
      "in the installer's folder, if the variable names no shell",
      [USUAL, "D:\\tools\\git.exe"],
      { CLAUDE_CODE_GIT_BASH_PATH: "D:\\tools\\git.exe" },
      USUAL,
    ],
    [
      "on another drive",
      ["E:\\Programs\\Git\\bin\\bash.exe"],
      { ProgramFiles: "E:\\Programs" },
      "E:\\Programs\\Git\\bin\\bash.exe",
    ],
    [
      "in the user's own folder",
      ["C:\\Users\\me\\AppData\\Local\\Programs\\Git\\bin\\bash.exe"],
      { LOCALAPPDATA: "C:\\Users\\me\\AppData\\Local" },
      "C:\\Users\\me\\AppData\\Local\\Programs\\Git\\bin\\bash.exe",
    ],
    [
      "in the folder of scoop",
      ["C:\\Users\\me\\scoop\\apps\\git\\current\\bin\\bash.exe"],
      { USERPROFILE: "C:\\Users\\me" },
      "C:\\Users\\me\\scoop\\apps\\git\\current\\bin\\bash.exe",
    ],
    [
      "beside the git in PATH, also if the variable is spelled Path",
      ["D:\\Git\\cmd\\git.exe", "D:\\Git\\bin\\bash.exe"],
      { Path: 'C:\\Windows;"D:\\Git\\cmd";.' },
      "D:\\Git\\bin\\bash.exe",
    ],
    [
      "two folders above git",
      ["D:\\Git\\mingw64\\bin\\git.exe", "D:\\Git\\bin\\bash.exe"],
      { PATH: "D:\\Git\\mingw64\\bin" },
      "D:\\Git\\bin\\bash.exe",
    ],
  ])("the shell is found %s", async (_, files, environment, path) => {
    expect(await windowsShell(machine(files, environment))).toEqual({ kind: "bash", path });
    await checkShell(machine(files, { ...environment, ...OFF }));
  });

  it("a bash without git beside it is not used, because WSL's bash sees other paths", async () => {
    const wsl = machine(["C:\\Windows\\System32\\bash.exe"], { PATH: "C:\\Windows\\System32" });
    expect(await windowsShell(wsl)).toEqual({ kind: "powershell only" });
  });

  it("Claude Code starts with PowerShell if there is no bash", async () => {
    expect(await windowsShell(machine([]))).toEqual({ kind: "powershell only" });
    expect(await windowsShell(machine([], { CLAUDE_CODE_USE_POWERSHELL_TOOL: "1" }))).toEqual({
      kind: "powershell only",
    });
    await checkShell(machine([]));
  });

  it.each(["0", "false", "No", " off "])(
    "a start is refused if there is no bash and PowerShell is turned off by %j",
    async (off) => {
      const environment = { CLAUDE_CODE_USE_POWERSHELL_TOOL: off };
      expect(await windowsShell(machine([], environment))).toEqual({ kind: "none" });
      await expect(checkShell(machine([], environment))).rejects.toThrow(
        expect.objectContaining({
          code: "INVALID_ARGUMENT",
          message: expect.stringMatching(/Git Bash was not found.*git-scm\.com.*CLAUDE_CODE_GIT_BASH_PATH/) as string,
        }) as Error,
      );
    },
  );

  it.each<NodeJS.Platform>(["linux", "darwin"])("the shell is not looked up on %s", async (platform) => {
    expect(await windowsShell(machine([], OFF, platform))).toEqual({ kind: "not windows" });
    await checkShell(machine([], OFF, platform));
  });
});
