import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { realpath, stat } from "../security/files/limited.ts";
import { readSmall } from "../security/files/plain-file.ts";
import { runClaude } from "./run-claude.ts";

/** Asks a Claude Code that did not come with the Agent SDK for its version, once for each state of its file. */

/** Oldest version that the pinned Agent SDK can start for this server (`mcpServersDelivery: "initialize"`). */
export const NEEDED_VERSION = "2.1.261";

/** Newest version tested with this release: the pinned Agent SDK's. */
export const NEWEST_TESTED = "2.1.332";

/** Oldest version with hooks known to hold messages of other sessions, and first version with a hook for commands of skills. */
const HOLDING_VERSION = "2.1.332";

/** Without `version`, assumes the Agent SDK's Claude Code. */
export function hasHoldingHooks(version = NEWEST_TESTED): boolean {
  return compareVersions(version, HOLDING_VERSION) >= 0;
}

/** Compares by numbers: negative if the first version is older, 0 if equal. */
export function compareVersions(one: string, other: string): number {
  const [left, right] = [one, other].map((text) => text.split(".").map(Number));
  for (let at = 0; at < 3; at += 1) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Version, or a `problem` that completes a sentence beginning with the path. */
export type Answer = { readonly version: string } | { readonly problem: string };

type Environment = Readonly<Record<string, string | undefined>>;

interface VersionSettings {
  /** Folder for versions kept from server to server. */
  readonly cacheFolder: string;
  /** Time limit for an answer, ms. */
  readonly ms?: number;
}

const StoredVersions = z.record(z.string(), z.string());
const VERSIONS_FILE = "claude-versions.json";
const MAX_STORED = 20;
const MOST_BYTES = 65_536;
const ANSWER_MS = 5_000;
/** Time before a program without an answer is asked again, ms: the machine may have been busy. */
const FAILED_FOR_MS = 30_000;

export class Versions {
  readonly #settings: VersionSettings;
  readonly #asked = new Map<string, Promise<Answer>>();

  constructor(settings: VersionSettings) {
    this.#settings = settings;
  }

  /** Returns the version of the program at `path`, asked in `environment`. Never rejects, and takes no longer than `ms`. */
  async of(path: string, environment: Environment): Promise<Answer> {
    const identity = await readFileState(path).catch((error: unknown) => ({
      problem: `cannot be read: ${String(error)}`,
    }));
    if (typeof identity !== "string") return identity;
    const known = this.#asked.get(identity);
    if (known) return known;
    const answer = this.#keptOrAsked({ path, environment }, identity);
    this.#asked.set(identity, answer);
    if ("problem" in (await answer)) setTimeout(() => this.#asked.delete(identity), FAILED_FOR_MS).unref();
    return answer;
  }

  async #keptOrAsked(
    { environment, path }: { readonly path: string; readonly environment: Environment },
    identity: string,
  ): Promise<Answer> {
    const version = (await this.#kept())[identity];
    if (version !== undefined) return { version };
    const answer = await askVersion(path, environment, this.#settings.ms ?? ANSWER_MS);
    if ("version" in answer) await this.#keep(identity, answer.version);
    return answer;
  }

  async #kept(): Promise<Record<string, string>> {
    try {
      return StoredVersions.parse(
        JSON.parse(await readSmall(join(this.#settings.cacheFolder, VERSIONS_FILE), MOST_BYTES)),
      );
    } catch {
      return {};
    }
  }

  /** Replaces the whole file. Ignores errors, because without the file the next server only asks again. */
  async #keep(identity: string, version: string): Promise<void> {
    const file = join(this.#settings.cacheFolder, VERSIONS_FILE);
    const draft = `${file}.${String(process.pid)}`;
    try {
      const others = Object.entries(await this.#kept()).slice(1 - MAX_STORED);
      await mkdir(this.#settings.cacheFolder, { recursive: true, mode: 0o700 });
      await writeFile(draft, JSON.stringify(Object.fromEntries([...others, [identity, version]])), { mode: 0o600 });
      await chmod(draft, 0o600);
      await rename(draft, file);
    } catch {
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }
}

/** Changes with an update, which replaces the file or redirects a link. */
async function readFileState(path: string): Promise<string> {
  const real = await realpath(path);
  const { mtimeMs, size } = await stat(real);
  return `${real} ${String(mtimeMs)} ${String(size)}`;
}

async function askVersion(path: string, environment: Environment, ms: number): Promise<Answer> {
  const answer = await runClaude(path, ["--version"], { environment, ms });
  return "problem" in answer ? answer : parseVersion(answer.text, answer.code);
}

function parseVersion(text: string, code: number | null): Answer {
  const [, version] = /^(\d+\.\d+\.\d+)\S* \(Claude Code\)/m.exec(text) ?? [];
  if (version !== undefined) return { version };
  if (code !== 0) return { problem: `fails at --version (exit code ${code === null ? "none" : String(code)})` };
  return { problem: "is not Claude Code: --version names another program" };
}
