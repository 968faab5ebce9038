import type { CanUseTool, PermissionResult } from "@anthropic-ai/claude-agent-sdk";
import type { JsonObject } from "../../domain/json.ts";
import type { Decision, PermissionRequest } from "../../domain/permission.ts";
import type { AgentSignal, Judgement } from "../../engine/ports.ts";
import type { Folders } from "../risk/named-paths.ts";
import { judgeRequest } from "../risk/judge.ts";
import { deniedBy, judgeChanged, toPermissionRequest, toPermissionResult, withoutFolders } from "./permissions.ts";

/** Limit for requests of subagents and parallel calls; a few dozen is the most seen. */
const MAX_OPEN_REQUESTS = 200;

const TOO_MANY: Decision = { behavior: "deny", message: "Too many requests are open. Wait until some are answered." };
const WITHDRAWN: Decision = { behavior: "deny", message: "The request was withdrawn." };
const FIXED = "The input of this request cannot be changed. Allow it as it is, or deny it.";

/** Question asked by a hook of Claude Code: answered with yes or no, never with changed input. */
interface HookQuestion extends Pick<PermissionRequest, "input" | "toolName"> {
  /** Claude Code's id of the hook call. */
  readonly id: string;
  readonly reason: string;
}

/** Resolves with the reason of a denial; with `undefined` if allowed. */
export type Confirm = (question: HookQuestion, signal: AbortSignal) => Promise<string | undefined>;

interface OpenRequest {
  readonly request: PermissionRequest;
  readonly resolve: (result: PermissionResult) => void;
  readonly isFixed: boolean;
}

/** Keeps the unanswered requests of Claude Code. */
export class OpenRequests {
  readonly #onSignal: (signal: AgentSignal) => void;
  readonly #onReported: (requestId: string) => void;
  readonly #waiting = new Map<string, OpenRequest>();
  /** Deny rules added by answers. */
  readonly #denied: string[] = [];

  /** `onReported` is called after the signal of a request was sent. */
  constructor(onSignal: (signal: AgentSignal) => void, onReported: (requestId: string) => void) {
    this.#onSignal = onSignal;
    this.#onReported = onReported;
  }

  /** Returns the callbacks for both kinds of requests: permission requests and hooks. */
  bindings(about: Parameters<OpenRequests["asking"]>[0]): { readonly ask: CanUseTool; readonly confirm: Confirm } {
    return { ask: this.asking(about), confirm: this.confirming(about) };
  }

  asking({ folders, isSandboxed }: { readonly folders: Folders; readonly isSandboxed: boolean }): CanUseTool {
    return async (toolName, input, details) => {
      const bare = toPermissionRequest(toolName, input, details);
      const request = { ...bare, ...(await judgeRequest(bare, folders)) };
      if (details.signal.aborted) return toPermissionResult(WITHDRAWN);
      const result = await this.#ask(request, details.signal);
      return isSandboxed ? withoutFolders(result) : result;
    };
  }

  confirming({ folders }: { readonly folders: Folders }): Confirm {
    return async ({ id, input, reason, toolName }, signal) => {
      const ids = { requestId: id, toolUseId: id };
      const bare = { ...ids, kind: "permission" as const, toolName, input, decisionReason: reason };
      const request = { ...bare, ...(await judgeRequest(bare, folders)) };
      const result = signal.aborted
        ? toPermissionResult(WITHDRAWN)
        : await this.#ask(request, signal, { isFixed: true });
      return result.behavior === "deny" ? result.message : undefined;
    };
  }

  answer(requestId: string, decision: Decision): void {
    const waiting = this.#waiting.get(requestId);
    this.#waiting.delete(requestId);
    if (decision.behavior === "allow") this.#denied.push(...deniedBy(decision.updatedPermissions ?? []));
    waiting?.resolve(toPermissionResult(decision));
  }

  has(requestId: string): boolean {
    return this.#waiting.has(requestId);
  }

  /** `denying`: deny rules of the session and its settings. `undefined` if the request is not open. */
  async judge(
    requestId: string,
    input: JsonObject,
    { denying, folders }: { readonly denying: readonly string[]; readonly folders: Folders },
  ): Promise<Judgement | undefined> {
    const waiting = this.#waiting.get(requestId);
    if (waiting?.isFixed) return { denying: [], refused: FIXED };
    return waiting && judgeChanged({ request: waiting.request, input }, folders, [...denying, ...this.#denied]);
  }

  /** After attaching, withdraws the `open` requests for which Claude Code no longer waits. */
  async withdrawOthers(open: readonly string[], pending: Promise<readonly string[]> | undefined): Promise<void> {
    const waitsFor = open.length > 0 ? await pending : undefined;
    for (const requestId of waitsFor ? open : []) {
      if (waitsFor?.includes(requestId) === false) this.#onSignal({ type: "withdrawn", requestId });
    }
  }

  async #ask(
    request: PermissionRequest,
    signal: AbortSignal,
    { isFixed } = { isFixed: false },
  ): Promise<PermissionResult> {
    const { requestId } = request;
    // Each request is stored in the session's row. Endless requests, or a repeated id, do not come from a normal Claude Code.
    if (this.#waiting.size >= MAX_OPEN_REQUESTS || this.#waiting.has(requestId)) return toPermissionResult(TOO_MANY);
    const answered = new Promise<PermissionResult>((resolve) => {
      this.#waiting.set(requestId, { request, resolve, isFixed });
    });
    const withdraw = () => {
      if (!this.#waiting.has(requestId)) return;
      this.#onSignal({ type: "withdrawn", requestId });
      this.answer(requestId, WITHDRAWN);
    };
    signal.addEventListener("abort", withdraw, { once: true });
    this.#onSignal({ type: "asked", request });
    this.#onReported(requestId);
    return answered.finally(() => signal.removeEventListener("abort", withdraw));
  }
}
