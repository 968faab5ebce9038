import type { CanUseTool, PermissionResult } from "@anthropic-ai/claude-agent-sdk";
import type { JsonObject } from "../../domain/json.ts";
import type { Decision, PermissionRequest } from "../../domain/permission.ts";
import type { AgentSignal, Judgement } from "../../engine/ports.ts";
import type { Folders } from "../risk/places.ts";
import { judgeRequest } from "../risk/judge.ts";
import { deniedBy, judgeChanged, toPermissionRequest, toPermissionResult, withoutFolders } from "./permissions.ts";

/** Subagents and parallel calls ask at the same time; a few dozen is the most seen. */
const MAX_OPEN_REQUESTS = 200;

const TOO_MANY: Decision = { behavior: "deny", message: "Too many requests are open. Wait until some are answered." };
const WITHDRAWN: Decision = { behavior: "deny", message: "The request was withdrawn." };

/** What Claude Code has asked and is not answered yet. */
export class OpenRequests {
  readonly #onSignal: (signal: AgentSignal) => void;
  readonly #onReported: (requestId: string) => void;
  readonly #waiting = new Map<string, { request: PermissionRequest; resolve: (result: PermissionResult) => void }>();
  /** Rules that answers have added. */
  readonly #denied: string[] = [];

  /** `onReported` is called when the signal of a request was sent. */
  constructor(onSignal: (signal: AgentSignal) => void, onReported: (requestId: string) => void) {
    this.#onSignal = onSignal;
    this.#onReported = onReported;
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

  answer(requestId: string, decision: Decision): void {
    const waiting = this.#waiting.get(requestId);
    this.#waiting.delete(requestId);
    if (decision.behavior === "allow") this.#denied.push(...deniedBy(decision.updatedPermissions ?? []));
    waiting?.resolve(toPermissionResult(decision));
  }

  has(requestId: string): boolean {
    return this.#waiting.has(requestId);
  }

  /** `denying` are the rules of the session and its settings that deny. Undefined for a request that is not open. */
  async judge(
    requestId: string,
    input: JsonObject,
    { denying, folders }: { readonly denying: readonly string[]; readonly folders: Folders },
  ): Promise<Judgement | undefined> {
    const waiting = this.#waiting.get(requestId);
    return waiting && judgeChanged({ request: waiting.request, input }, folders, [...denying, ...this.#denied]);
  }

  /** After another server had the process: those of its open requests for which Claude Code no longer waits. */
  async withdrawOthers(open: readonly string[], pending: Promise<readonly string[]> | undefined): Promise<void> {
    const waitsFor = open.length > 0 ? await pending : undefined;
    for (const requestId of waitsFor ? open : []) {
      if (waitsFor?.includes(requestId) === false) this.#onSignal({ type: "withdrawn", requestId });
    }
  }

  async #ask(request: PermissionRequest, signal: AbortSignal): Promise<PermissionResult> {
    const { requestId } = request;
    // Each waits in the session's row: what asks without end, or twice by one id, is not Claude Code at its work.
    if (this.#waiting.size >= MAX_OPEN_REQUESTS || this.#waiting.has(requestId)) return toPermissionResult(TOO_MANY);
    const answered = new Promise<PermissionResult>((resolve) => this.#waiting.set(requestId, { request, resolve }));
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
