import { watch, type FSWatcher } from "node:fs";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { ApproverParts, ApproverPort, Offered, Reception } from "../../../src/approvers/approver.ts";

/** Content of `REQUEST.decision.json`; `REQUEST.request.json` holds the request while open. */

const Decision = z.strictObject({ decision: z.enum(["allow", "deny"]), denyMessage: z.string().exactOptional() });

const DECISION = ".decision.json";

export class FileDrop implements ApproverPort {
  readonly #folder: string;
  readonly #mask: ApproverParts["mask"];
  readonly #log: ApproverParts["log"];
  readonly #watcher: FSWatcher;
  readonly #waiting = new Map<string, Offered>();

  constructor(folder: string, mask: ApproverParts["mask"], log: ApproverParts["log"]) {
    this.#folder = folder;
    this.#mask = mask;
    this.#log = log;
    this.#watcher = watch(folder, (_, name) => {
      if (name?.endsWith(DECISION)) void this.#take(name.slice(0, -DECISION.length));
    });
  }

  async offer(offered: Offered): Promise<Reception> {
    const { request, session, until } = offered;
    const { input, requestId, toolName } = request;
    const shown = this.#mask(input);
    const text = JSON.stringify({ requestId, toolName, input: shown, session, until: until() });
    this.#waiting.set(requestId, offered);
    try {
      // Renamed into place, so that a reader never sees a partial file.
      const draft = join(this.#folder, `${requestId}.draft`);
      await writeFile(draft, text);
      await rename(draft, this.#fileOf(requestId));
    } catch (error) {
      this.#waiting.delete(requestId);
      this.#log.warn("file-drop: cannot be written", { error: String(error) });
      return { is: "unreachable" };
    }
    if (!this.#waiting.has(requestId)) {
      this.withdraw(requestId);
      return { is: "withdrawn" };
    }
    return { is: "delivered", whole: isDeepStrictEqual(shown, input) };
  }

  withdraw(requestId: string): void {
    this.#waiting.delete(requestId);
    void rm(this.#fileOf(requestId), { force: true }).catch(() => undefined);
  }

  close(): void {
    this.#watcher.close();
  }

  async #take(requestId: string): Promise<void> {
    const offered = this.#waiting.get(requestId);
    if (!offered) return;
    try {
      await offered.answer(
        Decision.parse(JSON.parse(await readFile(join(this.#folder, requestId + DECISION), "utf8"))),
      );
    } catch (error) {
      this.#log.warn("file-drop: no decision", { requestId, error: String(error) });
    }
  }

  #fileOf(requestId: string): string {
    return join(this.#folder, `${requestId}.request.json`);
  }
}
