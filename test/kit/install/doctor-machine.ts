import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, afterEach, beforeEach, vi } from "vitest";

import { ClaudeLocator } from "../../../src/claude/locate.ts";
import { examine } from "../../../src/doctor/checks.ts";
import type { Finding } from "../../../src/doctor/finding.ts";
import { createMachine, type Machine } from "../../../src/doctor/machine.ts";

/** Shell script in place of `claude`: logs in, updates itself and trusts folders. */
export const CLAUDE = `#!/bin/sh
case "$*" in
  --version) echo "\${VERSION:-2.1.332} (Claude Code)" ;;
  update) sed -i 's/:-2.1.100/:-2.1.332/' "$0" ;;
  "auth login") touch "$HOME/logged-in" ;;
  "auth status")
    if [ -n "$ANTHROPIC_API_KEY" ]; then echo '{"loggedIn":true,"authMethod":"api_key"}'
    elif [ -e "$HOME/logged-in" ]; then echo '{"loggedIn":true,"authMethod":"claude.ai","subscriptionType":"max"}'
    else echo '{"loggedIn":false,"authMethod":"none"}'; exit 1; fi ;;
  --print*) cat > "$HOME/asked"; cat "$HOME/settings-answer" ;;
  "") echo "{\\"projects\\":{\\"$PWD\\":{\\"hasTrustDialogAccepted\\":true}}}" > "$HOME/.claude.json" ;;
esac
`;

/** A machine in a folder without any fault, recreated for each test. Paths are short, because socket paths have a limit. */
export class TestMachine {
  environment: Record<string, string> = {};
  #home = "";

  readonly at = (...names: string[]): string => join(this.#home, ...names);

  /** Path of the main script with which `doctor` was started. */
  get script(): string {
    return this.at("lib", "main.js");
  }

  get stateFolder(): string {
    return this.at("state", "claude-agents-mcp");
  }

  make(root: string): void {
    this.#home = mkdtempSync(join(root, "h-"));
    for (const folder of ["bin", "lib", "tmp", "work"]) mkdirSync(this.at(folder));
    writeFileSync(this.script, "", { mode: 0o755 });
    mkdirSync(this.stateFolder, { recursive: true, mode: 0o700 });
    vi.stubEnv("TMPDIR", this.at("tmp"));
    this.environment = {
      HOME: this.#home,
      PATH: `${this.at("bin")}:/usr/bin:/bin`,
      XDG_STATE_HOME: this.at("state"),
      XDG_CACHE_HOME: this.at("cache"),
    };
    writeFileSync(this.at("logged-in"), "");
    this.settingsErrors([]);
    this.claude(CLAUDE);
  }

  /** Sets the answer of Claude Code to a request for its settings. */
  settingsErrors(errors: readonly object[]): void {
    const response = { subtype: "success", request_id: "1", response: { effective: {}, sources: [], errors } };
    writeFileSync(this.at("settings-answer"), `${JSON.stringify({ type: "control_response", response })}\n`);
  }

  claude(text: string): void {
    writeFileSync(this.at("bin", "claude"), text, { mode: 0o755 });
  }

  /** Returns the machine as `doctor` sees it, with the flags `argv`. */
  toMachine(changes: Partial<Machine> = {}, argv: string[] = []): Machine {
    const { environment } = this;
    const cacheFolder = this.at("cache", "claude-agents-mcp");
    const locator = new ClaudeLocator({ cacheFolder, log: { warn: () => undefined }, ms: 500 }, () => []);
    return {
      ...createMachine(argv, environment),
      cwd: this.at("work"),
      script: this.script,
      claude: { locate: async () => locator.locate(environment) },
      sandboxProblem: async () => Promise.resolve(undefined),
      ...changes,
    };
  }

  async faults(seen = this.toMachine()): Promise<Finding[]> {
    return (await examine(seen, () => undefined)).filter(({ level }) => level !== "ok");
  }

  /** Returns the only finding; throws if there are none or more. */
  async onlyFault(seen = this.toMachine()): Promise<Finding> {
    const found = await this.faults(seen);
    const [first] = found;
    if (!first || found.length > 1) throw new Error(`these were found, in place of one: ${JSON.stringify(found)}`);
    return first;
  }

  /** Runs the command of `fix` in a shell with the machine's environment. */
  runFix({ fix }: Finding): void {
    execFileSync("/bin/sh", ["-c", fix ?? "exit 9"], { env: this.environment, stdio: "ignore" });
  }

  /** Runs the command of `fix` in the user's own shell: changed variables stay in `environment`. */
  typeFix({ fix }: Finding): void {
    const output = execFileSync("/bin/sh", ["-c", `${fix ?? "exit 9"} && env -0`], {
      env: this.environment,
      encoding: "utf8",
    });
    const lines = output.split("\0").filter((line) => line.includes("="));
    this.environment = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
  }
}

export function useMachine(): TestMachine {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "d-")));
  const machine = new TestMachine();
  beforeEach(() => machine.make(root));
  afterEach(() => vi.unstubAllEnvs());
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return machine;
}
