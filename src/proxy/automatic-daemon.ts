import type { Socket } from "node:net";
import { AbsentError, RefusedError, whyOf } from "./failures.ts";
import { greet, ownHello } from "./greet.ts";
import { storeFile } from "./own-server.ts";
import { constants } from "../config/constants.ts";
import { stateFolder } from "../config/state-folder.ts";
import { socketFolders } from "../daemon/folders.ts";
import { daemonName } from "../daemon/name.ts";
import { Patience } from "../daemon/patience.ts";
import { startDaemon } from "../daemon/start.ts";
import { takeTurn } from "../daemon/starting.ts";
import type { ClientHello } from "../daemon/wire.ts";

/** Time without a hello after which a daemon counts as frozen, ms. */
const FROZEN_MS = 1_000;

/** Finds or starts the daemon of this store, state folder, build and confinement. */
export class AutomaticDaemon {
  readonly startMs: number;
  readonly #argv: readonly string[];
  readonly #main: string;
  readonly #hello: ClientHello;
  #place: Promise<Place> | undefined;

  constructor(argv: readonly string[], main: string, purpose: ClientHello["purpose"] = "mcp") {
    this.startMs = constants().daemonStartMs;
    this.#argv = argv;
    this.#main = main;
    this.#hello = ownHello(argv, purpose);
  }

  absent(why: string): string {
    return `No daemon can be had: ${why}. Nothing that was recorded is lost. See \`claude-agents-mcp daemon status\` and \`daemon logs\`.`;
  }

  async connect(patience = new Patience(this.startMs), sessions?: readonly string[]): Promise<Socket> {
    const left = () => Math.max(1, patience.leftMs);
    const place = await (this.#place ??= placeOf(this.#argv).catch((error: unknown) => {
      this.#place = undefined;
      throw error;
    }));
    const { folders, state, store } = place;
    const meet = async () =>
      greet({ folders, name: place.name, hello: this.#hello, sessions }, Math.min(left(), FROZEN_MS));
    try {
      return await meet();
    } catch (error) {
      if (error instanceof RefusedError) throw error;
      const endTurn = await takeTurn(folders, place.name, left());
      if (!endTurn) return meet();
      try {
        const start = async () => {
          const words = store === undefined ? [] : ["--store", store];
          place.name = await startDaemon({ name: place.name, words, main: this.#main, ms: left(), stateFolder: state });
        };
        // Tries again after an `AbsentError`, because another client may have started the daemon just before. Other errors mean
        // a frozen daemon, which is still there.
        const there = error instanceof AbsentError ? await meet().catch(() => undefined) : undefined;
        return there ?? (await startAndMeet(start, meet));
      } finally {
        endTurn();
      }
    }
  }
}

/** Connects even after a failed `start`, because another daemon may have been first. */
async function startAndMeet(start: () => Promise<void>, meet: () => Promise<Socket>): Promise<Socket> {
  const failure: unknown = await start().catch((error: unknown) => error);
  return meet().catch((error: unknown) => {
    throw failure === undefined ? error : new RefusedError(`the daemon did not start: ${whyOf(failure)}`);
  });
}

interface Place {
  /** Name of this build's daemon, until `startDaemon` returns another name. */
  name: string;
  readonly folders: readonly string[];
  readonly state: string;
  readonly store: string | undefined;
}

/** Rejects with `RefusedError`: without a usable state folder there will be no daemon. */
async function placeOf(argv: readonly string[]): Promise<Place> {
  const state = stateFolder(process.env, process.platform);
  try {
    const folders = await socketFolders(state);
    const store = storeFile({ argv, env: process.env });
    return { name: await daemonName({ stateFolder: state, store }), folders, state, store };
  } catch (error) {
    throw new RefusedError(whyOf(error));
  }
}
