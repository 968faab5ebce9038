import { constants } from "node:fs";
import { dirname } from "node:path";
import { CLAUDE_PATH } from "../domain/client-environment.ts";
import { AppError } from "../domain/error.ts";
import type { Logger } from "../engine/ports.ts";
import { bundledClaudes, distinctExecutables, platformPackage, userClaudeFiles } from "./claude-files.ts";
import type { PackageCache } from "../packages/package-cache.ts";
import { SDK, type Pinned } from "../packages/pinned.ts";
import { access, fileAccess, realpath } from "../security/files/limited.ts";
import { isExecutable } from "../security/find-program.ts";
import { compareVersions, NEEDED_VERSION, NEWEST_TESTED, Versions } from "./version.ts";

/**
 * Chooses the Claude Code for sessions: `--claude-path`, otherwise the Agent SDK's, otherwise the user's own. If there is none,
 * the first session installs the SDK's. The SDK's is used unchecked; any other must answer `--version` and be new enough.
 */

export interface LocatorSettings {
  readonly cacheFolder: string;
  /** Time limit for an answer to `--version`, ms. Default: 5000. */
  readonly ms?: number;
  readonly log: Pick<Logger, "warn">;
  /** Cache for installing the SDK's Claude Code; `undefined` if installing is impossible. */
  readonly packages?: Pick<PackageCache, "findEntry"> | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface LocatedClaude {
  /** `undefined` if the SDK has two builds (glibc and musl) and chooses by itself, or if `toInstall` is not installed yet. */
  readonly path: string | undefined;
  /** `undefined` for the SDK's Claude Code. */
  readonly version: string | undefined;
  /** Warning about a version outside the tested range. */
  readonly warning: string | undefined;
  /** Set if no Claude Code is available yet: the first session installs this package. */
  readonly toInstall?: Pinned;
}

/** Claude Code that was examined and cannot be used. */
interface Refused {
  readonly path: string;
  readonly problem: string;
  /** Command that solves the problem, if known. */
  readonly fix: string | undefined;
}

/** Thrown if no Claude Code can be used. */
export class NoClaudeError extends AppError {
  /** Single command that solves the problem. */
  readonly fix: string;

  constructor(message: string, fix: string) {
    super("INTERNAL", message);
    this.fix = fix;
  }
}

/** Command that installs Claude Code for the user. */
export const INSTALL = "npm install -g @anthropic-ai/claude-code";

export class ClaudeLocator {
  readonly #settings: LocatorSettings;
  readonly #versions: Versions;
  readonly #warned = new Set<string>();
  /** Replaced in tests, because this package has a bundled Claude Code in its own folder. */
  readonly #bundled: () => string[];

  constructor(settings: LocatorSettings, bundled = bundledClaudes) {
    this.#settings = settings;
    this.#versions = new Versions(settings);
    this.#bundled = bundled;
  }

  /** Chooses the Claude Code for processes with `environment`. Throws `NoClaudeError` with the examined files and advice. */
  async locate(environment: Environment): Promise<LocatedClaude> {
    const { packages } = this.#settings;
    const claudePath = environment[CLAUDE_PATH];
    if (claudePath !== undefined) return this.#named(claudePath, environment);
    const bundled = this.#bundled();
    if (bundled.length > 0) return sdkClaude(bundled.length === 1 ? bundled[0] : undefined);
    const pinned = packages && platformPackage();
    const cached = pinned && packages.findEntry(pinned);
    if (cached !== undefined) return sdkClaude(cached);
    const places = await userClaudeFiles(environment);
    const refused: Refused[] = [];
    for (const path of await distinctExecutables([...places.path, ...places.usual])) {
      const judged = await this.#judge(path, environment);
      if (!("problem" in judged)) return judged;
      refused.push(judged);
    }
    if (!pinned) throw noClaudeError(refused, places.usual);
    for (const { path, problem } of refused)
      this.#warnOnce(`${path} ${problem}. The Agent SDK's Claude Code is used instead.`);
    return { ...sdkClaude(undefined), toInstall: pinned };
  }

  #warnOnce(text: string): void {
    if (!this.#warned.has(text)) this.#settings.log.warn(text);
    this.#warned.add(text);
  }

  async #named(path: string, environment: Environment): Promise<LocatedClaude> {
    const isProgram = await isExecutable(path);
    if (!isProgram) fileAccess.check(path, "--claude-path");
    const judged = isProgram
      ? await this.#judge(path, environment)
      : { path, problem: "is not an executable file", fix: undefined };
    if (!("problem" in judged)) return judged;
    const advice = judged.fix === undefined ? "Name another file, or leave out --claude-path." : `Run: ${judged.fix}`;
    const message = `Claude Code did not start: --claude-path ${path} ${judged.problem}. ${advice}`;
    throw new NoClaudeError(message, judged.fix ?? INSTALL);
  }

  async #judge(path: string, environment: Environment): Promise<LocatedClaude | Refused> {
    const answer = await this.#versions.of(path, environment);
    if ("problem" in answer) return { path, problem: answer.problem, fix: undefined };
    const { version } = answer;
    if (compareVersions(version, NEEDED_VERSION) < 0) {
      return {
        path,
        problem: `is version ${version}: ${NEEDED_VERSION} or newer is needed`,
        fix: await findUpdateCommand(path),
      };
    }
    const warning = untestedText(path, version);
    if (warning !== undefined) this.#warnOnce(warning);
    return { path, version, warning };
  }
}

function sdkClaude(path: string | undefined): LocatedClaude {
  return { path, version: undefined, warning: undefined };
}

/**
 * Returns the files that are, or could become, the user's own Claude Code: a session that writes such a file makes the next
 * session run the file. Empty if the bundled Claude Code is used.
 */
export async function executedClaudeFiles(environment: Environment, bundled = bundledClaudes()): Promise<string[]> {
  const claudePath = environment[CLAUDE_PATH];
  if (claudePath !== undefined) return [claudePath];
  if (bundled.length > 0) return [];
  const { path, usual } = await userClaudeFiles(environment);
  const found: string[] = [];
  for (const file of path) if ((await isExecutable(file)) || (await isWritable(dirname(file)))) found.push(file);
  return [...found, ...usual];
}

async function isWritable(folder: string): Promise<boolean> {
  return access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
}

function untestedText(path: string, version: string): string | undefined {
  if (compareVersions(version, NEWEST_TESTED) <= 0) return undefined;
  return `${path} is Claude Code ${version}, newer than ${NEWEST_TESTED}, the newest version tested with this release.`;
}

/** Returns the update command for `path`: of Homebrew, npm or the native installer. */
export async function findUpdateCommand(path: string): Promise<string> {
  const real = await realpath(path);
  if (/[\\/](?:Cellar|Caskroom)[\\/]/.test(real)) return "brew upgrade claude-code";
  if (/[\\/]node_modules[\\/]@anthropic-ai[\\/]/.test(real)) return `${INSTALL}@latest`;
  return `${/\s/.test(path) ? `"${path}"` : path} update`;
}

function noClaudeError(refused: readonly Refused[], usual: readonly string[]): NoClaudeError {
  const fix = refused.find((each) => each.fix !== undefined)?.fix ?? INSTALL;
  const found = refused.map(({ path, problem }) => `${path} ${problem}`);
  const looked = [
    `no ${SDK}-${process.platform}-${process.arch} is installed`,
    ...(found.length > 0 ? found : [`there is no claude in PATH, nor any of ${usual.join(", ")}`]),
  ];
  return new NoClaudeError(
    `Claude Code did not start: no usable Claude Code was found: ${looked.join("; ")}. Run: ${fix} (or name one with --claude-path).`,
    fix,
  );
}
