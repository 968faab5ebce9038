import type { ClaudeLocator } from "./locate.ts";
import type { PackageCache } from "../packages/package-cache.ts";
import { SDK_PACKAGE, type Pinned } from "../packages/pinned.ts";
import { loadSdk, sdkFile, type Sdk } from "./sdk.ts";

/** What a session needs of Anthropic's, which this program does not bring: installed before the first session starts. */

interface Parts {
  readonly claude: Pick<ClaudeLocator, "locate">;
  readonly packages: PackageCache;
}

interface Wanted {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly ownClaude?: string | undefined;
}

/** Interval at which progress is told, ms. */
const TELL_MS = 500;

export class Preparation {
  readonly #parts: Parts;
  #sdk: Sdk | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Installs what is missing for a session with this environment, which npm gets, and tells how far that is, in percent; not a word
   * where nothing is missing, nor after the end. `ownClaude` is the Claude Code that the session names. Throws AppError.
   */
  async complete({ environment, ownClaude }: Wanted, onProgress: (percent: number) => void): Promise<void> {
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

  /** Loaded at the first call. Throws InstallError where it is not installed. */
  sdk(): Sdk {
    this.#sdk ??= loadSdk(this.#parts.packages);
    return this.#sdk;
  }

  /** A session that names its Claude Code needs no other. */
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
