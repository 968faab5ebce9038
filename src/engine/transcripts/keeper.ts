import type { SessionEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { hasSpoken, type SessionState } from "../../domain/session.ts";
import {
  FencedError,
  type ConversationFile,
  type StoredFile,
  type StoreMachines,
  type TranscriptManifest,
} from "../ports.ts";
import { messageOf } from "../ports/store.ts";
import { pause } from "../clock.ts";
import { endsWithText, nameOf, storeFile, withoutPartialLine, type LocalConversation } from "./copies.ts";
import { keepingStore, localConversation, ranLastAt, type KeeperOptions } from "./kept.ts";
import type { MissingTurns } from "./missing.ts";
import { restoreConversation } from "./restore.ts";

/** Maximum size of a stored conversation, bytes. A larger one stays at its node. */
const MAX_BYTES = 536_870_912;
/** Wait for the last message of a turn in the transcript, and interval of looks, ms. Usually the message is there at once. */
const WRITTEN_MS = 2_000;
const LOOK_MS = 50;
/** Time limits before a session is given up, ms: of the exit of its process, and of the last save. */
const EXIT_MS = 5_000;
const FINISH_MS = 8_000;

interface Target {
  readonly state: SessionState;
  /** Message of the turn that the transcript must have; absent once no process writes any more. */
  readonly spoken?: string | undefined;
}

/**
 * Stores the conversation of a session in a shared folder at the end of each turn, so that another node can go on with it. Saves
 * run beside the session, one at a time, and only at the node that has run the last process. The sealed manifest counts: a save
 * that is cut, or in which Claude Code was late, leaves the one before.
 */
export class TranscriptKeeper {
  readonly #options: KeeperOptions;
  readonly #machines: StoreMachines | undefined;
  /** Last manifest of this owner. */
  #sealed: TranscriptManifest | undefined;
  /** Times of the last change of the files in `#sealed`, ms since the epoch, as far as this owner has stored them. */
  #changedAt: ReadonlyMap<string, number> = new Map();
  #wanted: Target | undefined;
  #saving: Promise<void> | undefined;
  /** Id of the last message of the running turn. */
  #spoken: string | undefined;
  /** Last stored state of the session. */
  #state: SessionState | undefined;
  #isUnsaved = false;
  #isStopped = false;
  #onExited: () => void = () => undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#machines = keepingStore(options);
  }

  /** True if another node ran the last process. */
  isMoved(state: SessionState): boolean {
    return this.#machines !== undefined && !ranLastAt(this.#machines.self.name, state);
  }

  /** Writes the conversation of another node, before a process starts here. Returns the turns that it lacks. */
  async restore(state: SessionState, environmentId: string): Promise<MissingTurns | undefined> {
    const restored = await restoreConversation(this.#options, { state, environmentId });
    if (restored?.manifest) this.#noteSealed(restored.manifest, []);
    return restored;
  }

  /** Takes events that were stored just now, and begins a save if a turn or a process has ended, or a turn waits at a limit. */
  note(state: SessionState, events: readonly SessionEvent[]): void {
    if (!this.#machines) return;
    this.#state = state;
    for (const event of events) {
      if (event.type === "turn.started") this.#spoken = undefined;
      if (event.type === "message") this.#spoken = spokenIn(event.data.message) ?? this.#spoken;
      if (isRest(event)) this.#begin(state);
    }
    if (state.process.phase === "none") this.#onExited();
  }

  /** True if something of the conversation is not stored that may still be. */
  get isUnsaved(): boolean {
    return (this.#isUnsaved || this.#saving !== undefined) && !this.#isStopped && !this.#state?.closed;
  }

  /** Stores what is left to store, before the session is given up. Never rejects. */
  async finish(): Promise<void> {
    if (!this.#state || !this.isUnsaved) return;
    this.#begin(this.#state);
    await this.#within(FINISH_MS, this.#saving);
  }

  /** Resolves as `finish`, once the process of the session has ended. */
  async finishAfterExit(): Promise<void> {
    if (!this.#state || !this.#machines) return;
    if (this.#state.process.phase !== "none") {
      const exited = new Promise<void>((resolve) => (this.#onExited = resolve));
      await this.#within(EXIT_MS, exited);
    }
    await this.finish();
  }

  /** The session belongs to another owner: nothing is written from here on. */
  stop(): void {
    this.#isStopped = true;
    this.#wanted = undefined;
    this.#onExited();
  }

  async #within(ms: number, done: Promise<void> | undefined): Promise<void> {
    const { end, over } = pause(this.#options.clock, ms);
    await Promise.race([done, over]);
    end();
  }

  #begin(state: SessionState): void {
    if (!this.#machines || this.#isStopped || !ranLastAt(this.#machines.self.name, state)) return;
    const isOver = state.process.phase === "none";
    this.#wanted = { state, ...(!isOver && this.#spoken !== undefined && { spoken: this.#spoken }) };
    this.#isUnsaved = true;
    this.#saving ??= this.#run(this.#machines).finally(() => (this.#saving = undefined));
  }

  async #run(machines: StoreMachines): Promise<void> {
    while (this.#wanted) {
      const target = this.#wanted;
      this.#wanted = undefined;
      try {
        this.#isUnsaved = !(await this.#save(machines, target));
      } catch (error) {
        if (error instanceof FencedError) this.stop();
        else this.#warn(messageOf(error));
      }
    }
  }

  /** Returns false if there is nothing to go on with. */
  async #save({ transcripts }: StoreMachines, { spoken, state }: Target): Promise<boolean> {
    const { lease } = this.#options;
    const local = localConversation(this.#options, state);
    const found = await this.#whole(local, { spoken, state });
    if (!found) return false;
    const sealed = this.#sealed ?? (await transcripts.manifest(lease.sessionId));
    const before = new Map(sealed?.files.map((file) => [nameOf(file), file]));
    const files: StoredFile[] = [];
    for (const file of found) {
      if (this.#isStopped) return false;
      const stored = before.get(file.name);
      const isSame = stored?.size === file.size && this.#changedAt.get(file.name) === file.changedAt;
      files.push(isSame ? stored : await storeFile(local, { lease, store: transcripts }, file, stored));
    }
    const manifest = { transcriptId: local.place.transcriptId, eventId: state.lastTurnEventId ?? 0, files };
    if (this.#isStopped) return false;
    if (JSON.stringify(manifest) !== JSON.stringify(sealed)) await transcripts.seal(lease, manifest);
    this.#noteSealed(manifest, found);
    return true;
  }

  #noteSealed(manifest: TranscriptManifest, found: readonly ConversationFile[]): void {
    this.#sealed = manifest;
    this.#changedAt = new Map(found.map(({ changedAt, name }) => [name, changedAt]));
  }

  /** Returns the files with their sizes at present; `undefined` if they are no conversation to go on with. */
  async #whole(local: LocalConversation, { spoken, state }: Target): Promise<ConversationFile[] | undefined> {
    if (spoken !== undefined && !(await this.#isWritten(local, spoken))) {
      this.#warn("Claude Code has not written the end of the turn to its transcript");
      return undefined;
    }
    const { files: listed } = await local.conversations.list(local.place);
    if (listed.length === 0 && hasSpoken(state)) {
      this.#warn("the transcript is gone");
      return undefined;
    }
    const size = listed.reduce((sum, file) => sum + file.size, 0);
    if (size > MAX_BYTES) {
      this.#warn(`its files have ${String(size)} bytes, more than ${String(MAX_BYTES)}`);
      return undefined;
    }
    const files: ConversationFile[] = [];
    for (const file of listed) files.push(file.name.endsWith(".jsonl") ? await withoutPartialLine(local, file) : file);
    return files;
  }

  /** Waits for a message in the transcript, which Claude Code writes beside its output. */
  async #isWritten(local: LocalConversation, spoken: string): Promise<boolean> {
    const { clock } = this.#options;
    const deadline = clock.tick() + WRITTEN_MS;
    for (;;) {
      const [transcript] = (await local.conversations.list(local.place)).files;
      if (transcript && (await endsWithText(local, transcript, spoken))) return true;
      if (this.#isStopped || clock.tick() >= deadline) return false;
      await pause(clock, LOOK_MS).over;
    }
  }

  #warn(reason: string): void {
    const { lease, log } = this.#options;
    log.warn("a conversation was not stored for other nodes", { sessionId: lease.sessionId, error: reason });
  }
}

/** True if Claude Code rests after the event, so that its files are whole. */
function isRest({ data, type }: SessionEvent): boolean {
  return type === "turn.ended" || type === "process.exited" || (type === "notice" && data.kind === "waiting");
}

/** Returns the id of a message that Claude Code also writes to the transcript: an answer of the model, subagents excluded. */
function spokenIn({ message, parent_tool_use_id: parent, type, uuid }: JsonObject): string | undefined {
  const isSynthetic =
    typeof message === "object" && message !== null && Reflect.get(message, "model") === "<synthetic>";
  return type === "assistant" && typeof uuid === "string" && !parent && !isSynthetic ? uuid : undefined;
}
