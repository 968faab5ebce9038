import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/**
 * Where the claude binary is that comes with the SDK, for this platform; undefined when npm left it out
 * (`--omit=optional`, or a platform it is not built for).
 */
export function bundledClaude(): string | undefined {
  return bundledClaudes()[0];
}

/**
 * The same where there is one and no more. To choose between two the SDK looks for the C library, and to find a single one
 * it does so too, for which it has Node write a whole diagnostic report each time: naming the file avoids that.
 */
export function onlyBundledClaude(): string | undefined {
  const [claude, ...others] = bundledClaudes();
  return others.length === 0 ? claude : undefined;
}

function bundledClaudes(): string[] {
  const require = createRequire(import.meta.url);
  const name = process.platform === "win32" ? "claude.exe" : "claude";
  const platform = `${process.platform}-${process.arch}`;
  return [platform, `${platform}-musl`]
    .map((target) => resolveFolder(require, `@anthropic-ai/claude-agent-sdk-${target}`))
    .flatMap((folder) => (folder === undefined ? [] : [join(folder, name)]))
    .filter((file) => existsSync(file));
}

export function isExecutableFile(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && (process.platform === "win32" || (stat.mode & 0o111) !== 0);
}

/** What to say where there is no binary to run. */
export function missingClaude(): string {
  const platform = `${process.platform}-${process.arch}`;
  return (
    `There is no Claude Code binary for ${platform}: npm did not install @anthropic-ai/claude-agent-sdk-${platform}. ` +
    "Install without --omit=optional, or name your own with --claude-path."
  );
}

function resolveFolder(require: NodeJS.Require, name: string): string | undefined {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}
