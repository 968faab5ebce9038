import type { Socket } from "node:net";
import { AbsentError, RefusedError, whyOf } from "./failures.ts";
import { greet, buildHello } from "./greet.ts";
import { findStore, storeFlags } from "./own-server.ts";
import { constants } from "../config/constants.ts";
import { stateFolder } from "../config/state-folder.ts";
import { socketFolders } from "../daemon/socket-folders.ts";
import { daemonName } from "../daemon/name.ts";
import { Countdown } from "../daemon/countdown.ts";
import { startDaemon } from "../daemon/start-daemon.ts";
import { acquireStartMutex } from "../daemon/start-mutex.ts";
import type { ClientHello } from "../daemon/wire.ts";

/** Time without a hello after which a daemon counts as frozen, ms. */
const FROZEN_MS = 1_000;

/** Finds or starts the daemon of this store, state folder, build and confinement. */
export class AutomaticDaemon {
  readonly startMs: number;
  readonly #argv: readonly string[];
  readonly #main: string;
  readonly #hello: ClientHello;
  #place: Promise<DaemonTarget> | undefined;

  constructor(argv: readonly string[], main: string, purpose: ClientHello["purpose"] = "mcp") {
    this.startMs = constants().daemonStartMs;
    this.#argv = argv;
    this.#main = main;
    this.#hello = buildHello(argv, purpose);
  }

  absent(why: string): string {
    return `No daemon is available: ${why}. Nothing that was recorded is lost. See \`claude-agents-mcp daemon status\` and \`daemon logs\`.`;
  }

  async connect(patience = new Countdown(this.startMs), sessions?: readonly string[]): Promise<Socket> {
    const left = () => Math.max(1, patience.leftMs);
    const place = await (this.#place ??= locateDaemon(this.#argv).catch((error: unknown) => {
      this.#place = undefined;
      throw error;
    }));
    const { folders, state, words } = place;
    const connectNow = async () =>
      greet({ folders, name: place.name, hello: this.#hello, sessions }, Math.min(left(), FROZEN_MS));
    try {
      return await connectNow();
    } catch (error) {
      if (error instanceof RefusedError) throw error;
      const releaseMutex = await acquireStartMutex(folders, place.name, left());
      if (!releaseMutex) return connectNow();
      try {
        const start = async () => {
          place.name = await startDaemon({ name: place.name, words, main: this.#main, ms: left(), stateFolder: state });
        };
        // Tries again after an `AbsentError`, because another client may have started the daemon just before. Other errors mean
        // a frozen daemon, which is still there.
        const other = error instanceof AbsentError ? await connectNow().catch(() => undefined) : undefined;
        return other ?? (await startAndConnect(start, connectNow));
      } finally {
        releaseMutex();
      }
    }
  }
}

/** Connects even after a failed `start`, because another daemon may have been first. */
async function startAndConnect(start: () => Promise<void>, meet: () => Promise<Socket>): Promise<Socket> {
  const failure: unknown = await start().catch((error: unknown) => error);
  return meet().catch((error: unknown) => {
    throw failure === undefined ? error : new RefusedError(`the daemon did not start: ${whyOf(failure)}`);
  });
}

interface DaemonTarget {
  /** Name of this build's daemon, until `startDaemon` returns another name. */
  name: string;
  readonly folders: readonly string[];
  readonly state: string;
  /** Flags of the daemon. */
  readonly words: readonly string[];
}

/** Rejects with `RefusedError`: without a usable state folder there will be no daemon. */
async function locateDaemon(argv: readonly string[]): Promise<DaemonTarget> {
  const state = stateFolder(process.env, process.platform);
  try {
    const folders = await socketFolders(state);
    const start = { argv, env: process.env };
    const name = await daemonName({ stateFolder: state, store: findStore(start) });
    return { name, folders, state, words: storeFlags(start) };
  } catch (error) {
    throw new RefusedError(whyOf(error));
  }
}
