import type { z } from "zod";
import type { ApproverWords, ApproverName } from "../domain/approvals/answer-source.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { PermissionRequest, OpenRequest } from "../domain/permission.ts";
import type { AnswerRequest, Engine } from "../engine/api.ts";
import type { Append, Logger, SessionBackend } from "../engine/ports.ts";
import type { Audit } from "../tools/audit.ts";

/**
 * Answers requests of Claude Code. All facts about an approver stand in one entry of the table (approvers.ts): `--approvals`,
 * the help text, the docs, the page's words, settings and protected files are derived from it.
 */
export interface Approver {
  /** As operators write it, and as it is stored with each request and answer. */
  readonly name: ApproverName;
  readonly words: ApproverWords;
  /** For the help text: who that is, in parentheses behind the name. Missing where the name says it. */
  readonly help?: string;
  /** For docs/approvals.md, in Markdown: who that is, and how long they have a request. */
  readonly docs: { readonly is: string; readonly time: string };
  readonly time: ApproverTime;
  /** Settings of their own: each is made by a function of config/setting.ts. */
  readonly settings?: Readonly<Record<string, z.ZodType>>;
  /** Throws ConfigError where the settings, taken together, cannot be served with. */
  readonly check?: (config: Settings, isNamed: boolean) => void;
  readonly secret?: ApproverSecret;
  /** Files and folders that no session may read or write: a model that writes the answers approves what it asks. */
  readonly closed?: (config: Settings) => readonly ClosedPath[];
  /**
   * Begins to take requests to them. Missing for those who come for requests by themselves, as a call that waits and the
   * page do. Resolves with undefined where the settings do not ask for it.
   */
  readonly start?: (parts: ApproverParts) => Promise<StartedApprover | undefined>;
}

/** The configuration; each approver reads out of it what is their own. */
export type Settings = Readonly<Record<string, unknown>>;

/** How long they have a request. */
interface ApproverTime {
  /** ms, unless the operator says otherwise. */
  readonly usualMs: number;
  /** Never less than the calling model has. */
  readonly atLeastCallers?: boolean;
  /** 0 can be said: they may answer at any time, without a turn of their own. */
  readonly mayHaveNone?: boolean;
}

/** What the environment, or a file, holds instead of the configuration. */
export interface ApproverSecret {
  /** Of the environment; never passed on to Claude Code. */
  readonly variable: string;
  /** Undefined where none is needed. Throws ConfigError. */
  readonly read: (config: Settings, environment: NodeJS.ProcessEnv) => Promise<string | undefined>;
}

export interface ClosedPath {
  readonly path: string;
  /** Why, in words behind a colon. */
  readonly why: string;
}

/** What an approver is started with. */
export interface ApproverParts {
  readonly config: Settings;
  readonly isNamed: boolean;
  readonly secret: string | undefined;
  readonly version: string;
  readonly store: Pick<SessionBackend, "log" | "rows">;
  readonly http: ApproverHttp | undefined;
  /** Without secrets, for what leaves the server. */
  readonly mask: (fields: JsonObject) => JsonObject;
  readonly audit: Audit | undefined;
  readonly log: Logger;
}

/** Where clients reach this server. */
export interface ApproverHttp {
  readonly publicUrl: string;
  /** Counts what became of a delivery. */
  readonly countDelivery: (outcome: "delivered" | "failed" | "gone" | "dropped" | "obsolete") => void;
}

export interface StartedApprover {
  /** Missing where they are only told, and not asked. */
  readonly port?: ApproverPort;
  /** Told of each change of a session that this server has written, once it is durable. Never throws, and never waits. */
  readonly onAppended?: (sessionId: string, change: Append) => void;
  /** What is under way has so long. */
  readonly close?: (graceMs: number) => Promise<void>;
}

/** The way of a request to an approver, and back. */
export interface ApproverPort {
  /** It is their turn: the request is put to them. A session never waits for it. */
  offer(offered: Offered): Promise<Reception>;
  /** The approver may no longer answer it: it was answered, or is with the next approver. Never throws. */
  withdraw(requestId: string): void;
}

/**
 * The result of an offer: delivered, `whole` if nothing of the input was cut or masked; unreachable, so that the next approver is
 * asked at once; or withdrawn before.
 */
export type Reception =
  { readonly is: "delivered"; readonly whole: boolean } | { readonly is: "unreachable" } | { readonly is: "withdrawn" };

export interface Offered {
  readonly sessionId: string;
  readonly session: OfferedSession;
  readonly request: PermissionRequest;
  /** As it is when it becomes theirs. */
  readonly open: OpenRequest;
  /** When that was, ms since the epoch. */
  readonly at: number;
  /** Until when they can answer, ms since the epoch; moves when the time is extended. */
  readonly until: () => number;
  /**
   * Gives their answer. It counts as that of a program with the scope decide, which the operator has given them by naming
   * them in --approvals: it is not held to --caller-approves. Rejects with AppError where it comes too late.
   */
  readonly answer: (answer: OfferedAnswer) => Promise<void>;
}

export interface OfferedSession {
  readonly principal: string;
  readonly title?: string;
  readonly cwd: string;
}

export type OfferedAnswer = Pick<AnswerRequest, "decision" | "denyMessage" | "updatedInput">;

/** The verbs that the follower of all offers needs. */
export type OfferVerbs = Pick<Engine, "answer" | "delivered" | "pass">;

/** Something was asked. */
export type AskedEvent = Extract<SessionEvent, { type: "permission.asked" | "question.asked" }>;
