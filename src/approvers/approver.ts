import type { z } from "zod";
import type { ApproverWords, ApproverName } from "../domain/approvals/answer-source.ts";
import type { JsonObject } from "../domain/json.ts";
import type { PermissionRequest, OpenRequest } from "../domain/permission.ts";
import type { AnswerRequest, Engine } from "../engine/api.ts";
import type { Append, Delivery, Logger, NewDelivery, SessionBackend } from "../engine/ports.ts";
import type { Audit } from "../tools/audit.ts";
import type { Receiver } from "../webhooks/send.ts";
import type { Outcome } from "../webhooks/worker.ts";

/**
 * Answers requests of Claude Code. One entry of `APPROVERS` holds all facts about an approver: `--approvals`, the help text,
 * the docs, the console's words, settings and protected files are derived from the entry.
 */
export interface Approver {
  /** Spelling in `--approvals`, also stored with each request and answer. */
  readonly name: ApproverName;
  readonly words: ApproverWords;
  /** Explanation of the name in the help text, in parentheses. Missing if the name needs none. */
  readonly help?: string;
  /** Columns of the table in docs/approvals.md, in Markdown: the approver, and the time limit of a request. */
  readonly docs: { readonly is: string; readonly time: string };
  readonly time: ApproverTime;
  /** Settings of the approver, each created by a function of config/setting.ts. */
  readonly settings?: Readonly<Record<string, z.ZodType>>;
  /** Checks the settings together. `isNamed` is true if `--approvals` names the approver. Throws `ConfigError`. */
  readonly check?: (config: Settings, isNamed: boolean) => void;
  readonly secret?: ApproverSecret;
  /**
   * Files and folders that no session may read or write, because a model that could write answers would approve its own
   * requests.
   */
  readonly closed?: (config: Settings) => readonly ClosedPath[];
  /**
   * Starts the delivery of requests to the approver. Missing for approvers that fetch requests themselves, such as waiting
   * calls and the console. Resolves to `undefined` if the settings do not ask for the approver.
   */
  readonly start?: (parts: ApproverParts) => Promise<StartedApprover | undefined>;
}

/** The whole configuration; each approver parses its own settings. */
export type Settings = Readonly<Record<string, unknown>>;

/** Time limit of a request. */
interface ApproverTime {
  /** Default, ms. */
  readonly usualMs: number;
  /** Raises the default to at least the time of `caller`. */
  readonly atLeastCallers?: boolean;
  /** Accepts 0: the approver may answer at any time, without a turn in the chain. */
  readonly mayHaveNone?: boolean;
}

/** Secret from the environment or a file, so that the configuration does not contain the secret. */
export interface ApproverSecret {
  /** Name of the environment variable, which is never passed on to Claude Code. */
  readonly variable: string;
  /** Resolves to `undefined` if no secret is needed. Throws `ConfigError`. */
  readonly read: (config: Settings, environment: NodeJS.ProcessEnv) => Promise<string | undefined>;
}

export interface ClosedPath {
  readonly path: string;
  /** Reason, as a text to follow a colon. */
  readonly why: string;
}

/** Arguments of `Approver.start`. */
export interface ApproverParts {
  readonly config: Settings;
  readonly isNamed: boolean;
  readonly secret: string | undefined;
  readonly version: string;
  readonly store: Pick<SessionBackend, "log" | "nodeId" | "outbox" | "rows">;
  readonly http: ApproverHttp | undefined;
  /** Masks secrets in data that leaves the server. */
  readonly mask: (fields: JsonObject) => JsonObject;
  readonly audit: Audit | undefined;
  readonly log: Logger;
}

/** HTTP side of the server, for answers and metrics. */
export interface ApproverHttp {
  readonly publicUrl: string;
  /** Counts the outcome of a delivery. */
  readonly countDelivery: (outcome: Outcome) => void;
}

export interface StartedApprover {
  /** Missing if the approver is only notified, not asked. */
  readonly port?: ApproverPort;
  /** Set if the approver's messages go through the outbox of the store. */
  readonly outgoing?: OutgoingMessages;
  /** Stops the approver. Work in progress has `graceMs` to finish. */
  readonly close?: (graceMs: number) => Promise<void>;
}

/** Messages that the store keeps until they are delivered, by this server or by another with the same `target`. */
export interface OutgoingMessages {
  readonly target: string;
  /** Returns the messages to store with a change, in the same transaction. Must not throw. */
  readonly deliveriesOf: (sessionId: string, change: Append) => readonly NewDelivery[];
  readonly receiver: Receiver;
  /** Called with the end of each delivery by this server. */
  readonly onSettled: (delivery: Delivery, outcome: Outcome) => void;
}

/** Carries requests to an approver (`offer`) and answers back (`Offered.answer`). */
export interface ApproverPort {
  /** Delivers a request to the approver on its turn. Sessions never wait for the result. */
  offer(offered: Offered): Promise<Reception>;
  /** Takes a request back that was answered or has passed to the next approver. Never throws. */
  withdraw(requestId: string): void;
}

/**
 * The result of `offer`. `delivered`: `whole` is true if no input was cut or masked. `unreachable`: the next approver is asked
 * at once. `withdrawn`: the request was withdrawn before delivery.
 */
export type Reception =
  { readonly is: "delivered"; readonly whole: boolean } | { readonly is: "unreachable" } | { readonly is: "withdrawn" };

export interface Offered {
  readonly sessionId: string;
  readonly session: OfferedSession;
  readonly request: PermissionRequest;
  /** State of the request at the start of this approver's turn. */
  readonly open: OpenRequest;
  /** Start of the turn, ms since the epoch. */
  readonly at: number;
  /** Returns the deadline of the approver, ms since the epoch, which moves when the time is extended. */
  readonly until: () => number;
  /**
   * Gives the approver's answer. Counts as the answer of a program with the scope `decide`, because the operator has named the
   * approver in `--approvals`: `--caller-approves` does not limit the answer. Rejects with `AppError` if too late.
   */
  readonly answer: (answer: OfferedAnswer) => Promise<void>;
}

export interface OfferedSession {
  readonly principal: string;
  readonly title?: string;
  readonly cwd: string;
}

export type OfferedAnswer = Pick<AnswerRequest, "decision" | "denyMessage" | "updatedInput">;

/** Engine methods that `Offers` calls. */
export type OfferVerbs = Pick<Engine, "answer" | "delivered" | "pass">;
