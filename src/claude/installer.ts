import type { ClaudeLocator } from "./locate.ts";
import type { PackageCache } from "../packages/package-cache.ts";
import { SDK_PACKAGE, type Pinned } from "../packages/pinned.ts";
import { loadSdk, sdkFile, type Sdk } from "./sdk.ts";

/** Installs Anthropic's packages, needed by sessions and not shipped with this program, before the first session starts. */

interface InstallerParts {
  readonly claude: Pick<ClaudeLocator, "locate">;
  readonly packages: PackageCache;
}

interface Wanted {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly ownClaude?: string | undefined;
}

/** Interval between reports of progress, ms. */
const TELL_MS = 500;

export class Installer {
  readonly #parts: InstallerParts;
  #sdk: Sdk | undefined;

  constructor(parts: InstallerParts) {
    this.#parts = parts;
  }

  /**
   * Installs missing packages, running npm with `environment`, and reports progress in percent: nothing without missing
   * packages, nor after the end. `ownClaude`: Claude Code named by the session. Throws `AppError`.
   */
  async install({ environment, ownClaude }: Wanted, onProgress: (percent: number) => void): Promise<void> {
    const missing = await this.#missing({ environment, ownClaude });
    if (missing.length === 0) return;
    let isOver = false;
    const tell = async () => {
      const percent = await this.#percent(missing);
      if (!isOver) onProgress(percent);
    };
    onProgress(0);
    const timer = setInterval(() => void tell().catch(() => undefined), TELL_MS);
    try {
      await Promise.all(missing.map(async (pinned) => this.#parts.packages.install(pinned, environment)));
    } finally {
      isOver = true;
      clearInterval(timer);
    }
    this.sdk();
  }

  /** Loads the SDK at the first call. Throws `InstallError` if the SDK is not installed. */
  sdk(): Sdk {
    this.#sdk ??= loadSdk(this.#parts.packages);
    return this.#sdk;
  }

  /** With `ownClaude`, only the SDK can be missing. */
  async #missing({ environment, ownClaude }: Wanted): Promise<Pinned[]> {
    const { claude, packages } = this.#parts;
    const missing: Pinned[] = this.#sdk === undefined && sdkFile(packages) === undefined ? [SDK_PACKAGE] : [];
    const { toInstall } = ownClaude === undefined ? await claude.locate(environment) : {};
    return toInstall ? [...missing, toInstall] : missing;
  }

  async #percent(packages: readonly Pinned[]): Promise<number> {
    const parts = await Promise.all(packages.map(async (pinned) => this.#parts.packages.installedBytes(pinned)));
    const done = parts.reduce((sum, bytes) => sum + bytes, 0);
    return Math.floor((100 * done) / packages.reduce((sum, { bytes }) => sum + bytes, 0));
  }
}
