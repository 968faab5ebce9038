import { processTagOf } from "../domain/names.ts";
import { PermissionMode } from "../domain/permission.ts";
import type { Comparison, Receipt, Snapshot } from "../domain/receipt.ts";
import { optionsOf, promptsOf, type SessionState, verifiedPrompt } from "../domain/session.ts";
import type { Turn } from "../domain/running-turn.ts";
import type { Verify } from "../domain/verification.ts";
import type { ActorContext, ActorSession } from "./actor-context.ts";
import { policyOfProcess } from "./policy/turn-policy.ts";
import type { CheckedSession, FolderWatch, CheckRunner } from "./ports.ts";
import { buildReceipt } from "./receipt/build-receipt.ts";
import { countOthers, findOthers } from "./receipt/other-sessions.ts";
import { TurnReader } from "./receipt/turn-reader.ts";
import { findEnvironment } from "./session/environment.ts";
import type { Effect, Happening, JudgedVerification } from "./step.ts";

type EffectOf<T extends Effect["type"]> = Extract<Effect, { type: T }>;
export type EvidenceEffect = EffectOf<"baseline" | "judge" | "verify" | "stop-checks" | "look" | "forget">;

const EFFECTS = new Set<Effect["type"]>(["baseline", "judge", "verify", "stop-checks", "look", "forget"]);

export function isEvidenceEffect(effect: Effect): effect is EvidenceEffect {
  return EFFECTS.has(effect.type);
}

/** Default of the option `settingSources`. Hooks of settings run without an event. */
const ALL_SOURCES = ["user", "project", "local"];
/** Number of events of a turn read at once. */
const PAGE = 500;
/** Time to wait for a client of the session's identity, ms. With a look at the folders less than `SETTLE_MS`. */
const CLIENT_MS = 5_000;

interface EvidenceOptions
  extends Pick<ActorContext, "backend" | "runtime">, Pick<ActorSession, "policy" | "principal" | "spec"> {
  readonly sessionId: string;
  readonly epoch: number;
  readonly post: (happening: Happening) => void;
}

/** State of the folders before a turn, and number of files changed since the last receipt; `undefined` if not known. */
interface LookBefore {
  readonly before: Snapshot | undefined;
  readonly between: number | undefined;
}

/** Look at the folders before a turn. */
interface Baseline {
  readonly turnId: string;
  readonly before: Promise<Snapshot>;
  readonly between: Promise<number | undefined>;
  /** Sessions that worked in the folder when the turn began. */
  readonly others: Promise<ReadonlySet<string>>;
}

/**
 * Performs the effects at the beginning and the end of a turn: looks at the folders and runs the commands of a verification.
 * Every effect returns at once, and posts its outcome.
 */
export class EvidenceRunner {
  readonly #options: EvidenceOptions;
  #baseline: Baseline | undefined;
  #stopChecks = new AbortController();
  /** Resolves once the last look at the end of a turn is posted. */
  looked: Promise<void> = Promise.resolve();

  constructor(options: EvidenceOptions) {
    this.#options = options;
  }

  /** Returns a promise for the outcome, which never rejects. */
  async perform(effect: EvidenceEffect, state: SessionState): Promise<void> {
    switch (effect.type) {
      case "baseline":
        return this.#lookBefore(effect, state);
      case "judge":
        return this.#judge(effect, state);
      case "verify":
        return this.#verify(effect, state);
      case "stop-checks":
        return this.stopChecks();
      case "look":
        return (this.looked = this.#look(effect, state));
      case "forget":
        this.stopChecks();
        return this.#folders.forget(effect.turnId);
    }
  }

  /**
   * Calls `push` at once, except for a command of Claude Code (`/name`): such a prompt waits for the look at the folders, because
   * the command can run a shell command before the first request.
   */
  whenLooked(text: string, push: () => void): void {
    const isCommand = text.trimStart().startsWith("/");
    if (isCommand && this.#baseline) void this.#baseline.before.then(push);
    else push();
  }

  /** Ends the commands that run. A next owner of the session runs them anew. */
  stopChecks(): void {
    this.#stopChecks.abort();
  }

  get #folders(): FolderWatch {
    return this.#options.runtime.folders;
  }

  get #checks(): CheckRunner {
    return this.#options.runtime.checks;
  }

  async #session(state: SessionState): Promise<CheckedSession> {
    const { policy, principal, sessionId, spec } = this.#options;
    const found = await this.#environment(state).catch(() => undefined);
    return {
      sessionId,
      principal,
      options: optionsOf(spec, state),
      policy: policyOfProcess(policy, state),
      environmentId: found ?? state.environmentId ?? "",
      processTag: processTagOf(sessionId, "verify"),
    };
  }

  /** Returns the session's environment record. After the death of an owner only its clients have the record, and bring it. */
  async #environment(state: SessionState): Promise<string | undefined> {
    const { principal, runtime, spec } = this.#options;
    const found = findEnvironment(runtime.environments, { principal, spec, state });
    if (found !== undefined || !state.identity) return found;
    return runtime.environments.find(state.identity, { principal, options: optionsOf(spec, state) }, CLIENT_MS);
  }

  async #lookBefore({ turnId }: EffectOf<"baseline">, state: SessionState): Promise<void> {
    const before = this.#session(state).then(async (session) => this.#folders.look(session, turnId));
    const earlier = this.#snapshotIn(state.lastReceiptEventId).catch(() => undefined);
    const between = Promise.all([before, earlier]).then(([now, last]) => last && this.#folders.differences(last, now));
    const others = findOthers(this.#options);
    this.#baseline = { turnId, before, between, others };
    return this.#postBaseline(this.#baseline);
  }

  async #postBaseline({ before: looked, between: counted, turnId }: Baseline): Promise<void> {
    const [before, between] = await Promise.all([looked, counted]);
    this.#options.post({ type: "baseline", turnId, before, ...(between !== undefined && { between }) });
  }

  /** Returns the state of the folders in an event; `undefined` without such an event. */
  async #snapshotIn(eventId: number | undefined): Promise<Snapshot | undefined> {
    return (await this.#seenIn(eventId)).before;
  }

  async #seenIn(eventId: number | undefined): Promise<LookBefore> {
    const { backend, sessionId } = this.#options;
    const event = eventId === undefined ? undefined : (await backend.log.read(sessionId, eventId, 1)).at(0);
    if (event?.type === "turn.baseline") return { before: event.data.before, between: event.data.between };
    return { before: event?.type === "turn.receipt" ? event.data.after : undefined, between: undefined };
  }

  /** Returns the look before the turn: from memory, or of another server or turn, from the log. */
  async #lookOf({ baselineEventId, id }: Turn): Promise<LookBefore> {
    if (this.#baseline?.turnId !== id) return this.#seenIn(baselineEventId);
    return { before: await this.#baseline.before, between: await this.#baseline.between };
  }

  async #look({ number, turnId }: EffectOf<"look">, state: SessionState): Promise<void> {
    const { post } = this.#options;
    const seen = state.turn ? await this.#receipt(state.turn, state).catch(() => undefined) : undefined;
    post({ type: "looked", turnId, number, ...(seen && { seen }) });
  }

  async #receipt(turn: Turn, state: SessionState): Promise<{ receipt: Receipt; after: Snapshot }> {
    const { spec } = this.#options;
    const reader = await this.#read(turn, state);
    const facts = reader.done();
    const session = await this.#session(state);
    const { before, between = 0 } = await this.#lookOf(turn);
    const comparison = reader.needsLook
      ? await this.#folders.compare(session, before, turn.id, facts.files.paths)
      : unchanged(before);
    const receipt = buildReceipt({
      turn: turn.number ?? 0,
      facts,
      comparison,
      // Tools report a file by either name of the folder.
      cwd: [...new Set([spec.cwd, comparison.own ?? spec.cwd])],
      folders: spec.additionalDirectories ?? [],
      others: await this.#countOthers(turn),
      between,
      background: state.background.length,
    });
    return { receipt, after: comparison.after };
  }

  async #read(turn: Turn, state: SessionState): Promise<TurnReader> {
    const { backend, sessionId, spec } = this.#options;
    const { background, lastEventId } = state;
    const isOwn = turn.origin === "self";
    const mayHook = (spec.settingSources ?? ALL_SOURCES).length > 0;
    const reader = new TurnReader({ background: background.length, isOwn, mayHook });
    for (const { eventId } of promptsOf(state)) {
      for (const event of await backend.log.read(sessionId, eventId, 1)) reader.take(event);
    }
    for (let from = turn.eventId ?? lastEventId; from <= lastEventId;) {
      const page = await backend.log.read(sessionId, from, PAGE);
      for (const event of page) reader.take(event);
      from = (page.at(-1)?.id ?? lastEventId) + 1;
    }
    return reader;
  }

  async #countOthers(turn: Turn): Promise<number> {
    const atStart = this.#baseline?.turnId === turn.id ? await this.#baseline.others : [];
    return countOthers(this.#options, atStart, turn);
  }

  async #judge({ number, turnId }: EffectOf<"judge">, state: SessionState): Promise<void> {
    const judged = await this.#judged(state).catch((error: unknown): JudgedVerification => {
      const why = error instanceof Error ? error.message : String(error);
      return { refused: `The commands cannot be judged: ${why.replace(/[.\s]*$/, ".")}` };
    });
    this.#options.post({ type: "judged", turnId, number, ...judged });
  }

  async #judged(state: SessionState): Promise<JudgedVerification> {
    const { spec } = this.#options;
    const session = await this.#session(state);
    const refused = this.#checks.refusal(session);
    if (refused !== undefined) return { refused };
    const { attempts, commands } = await this.#commands(state);
    const judged = await this.#checks.judge(session, commands);
    return {
      commands: judged.map((each, index) => ({ command: commands[index] ?? "", judged: each })),
      of: state.turn?.origin === "verify" ? 1 : attempts + 1,
      own: spec,
      mode: modeOf(session, state),
    };
  }

  /** Reads the commands of the turn: of the last prompt with a verification of its own, otherwise the session's. */
  async #commands(state: SessionState): Promise<Verify> {
    const { backend, policy, sessionId } = this.#options;
    const { turn } = state;
    const prompt = verifiedPrompt(state);
    const eventId = turn?.origin === "verify" ? turn.eventId : prompt?.eventId;
    const event = eventId === undefined ? undefined : (await backend.log.read(sessionId, eventId, 1)).at(0);
    const own = event?.type === "prompt.queued" || event?.type === "turn.started" ? event.data.verify : undefined;
    const verify = own ?? policy.verify;
    if (!verify) throw new Error("its commands cannot be read from the log");
    return verify;
  }

  async #verify({ number, turnId }: EffectOf<"verify">, state: SessionState): Promise<void> {
    const { post, runtime } = this.#options;
    this.#stopChecks = new AbortController();
    const { signal: stop } = this.#stopChecks;
    const session = await this.#session(state);
    try {
      await runtime.endLeftover({ processTag: session.processTag });
      const { commands, timeoutMs } = await this.#commands(state);
      post({
        type: "verified",
        turnId,
        number,
        outcome: await this.#checks.run(session, commands, { timeoutMs, stop }),
      });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      post({ type: "verified", turnId, number, outcome: { status: "lost", commands: [], message } });
    }
  }
}

/**
 * Returns the present permission mode. `bypassPermissions` counts only if it was asked for, whatever Claude Code reports, and
 * if all who sent prompts may use it.
 */
function modeOf({ options, policy }: CheckedSession, { reported }: SessionState): PermissionMode {
  const { permissionMode: asked = "default" } = options;
  const { data: mode = asked } = PermissionMode.safeParse(reported.permissionMode);
  if (mode !== "bypassPermissions") return mode;
  return asked === mode && policy.allowsBypass ? mode : "default";
}

/** Comparison of a turn in which nothing could change a file. */
function unchanged(before: Snapshot = { folders: [] }): Comparison {
  const folders = before.folders.map(({ branch, head, kind, path }) => ({
    path,
    kind,
    ...(head !== undefined && { headBefore: head, headAfter: head }),
    ...(branch !== undefined && { branchBefore: branch, branchAfter: branch }),
  }));
  return { by: "tree", complete: true, folders, files: [], commits: [], gitFiles: [], notSeen: [], after: before };
}
