import { setTimeout as sleep } from "node:timers/promises";
import type { ControlRequest } from "../../domain/control.ts";
import { invalidArgument } from "../../domain/error.ts";
import type { BackgroundTask } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { DetachedProcesses } from "../supervise/detached-processes.ts";

/** Polling interval while detached processes run, ms. */
const LOOK_EVERY_MS = 2000;

type Detached = Pick<DetachedProcesses, "list" | "end">;

/**
 * Combines the background tasks reported by Claude Code with detached processes, neither reported nor ended by Claude Code:
 * https://github.com/anthropics/claude-code/issues/43944
 */
export class Background {
  readonly #detached: () => Detached | undefined;
  readonly #report: (tasks: BackgroundTask[]) => void;
  #reported: readonly BackgroundTask[] = [];
  #shownDetached: readonly BackgroundTask[] = [];
  #mayHaveLeft = false;
  #isFollowed = false;

  /** `mask` removes secrets before `report`, because the state is not masked later. */
  constructor(
    detached: () => Detached | undefined,
    report: (tasks: BackgroundTask[]) => void,
    mask: (text: string) => string,
  ) {
    this.#detached = detached;
    this.#report = (tasks) => report(tasks.map((task) => ({ ...task, description: mask(task.description) })));
  }

  /** Takes the tasks reported by Claude Code. */
  reported(tasks: readonly BackgroundTask[]): void {
    this.#reported = tasks;
    this.#report([...tasks, ...this.#shownDetached]);
  }

  /** Notes a tool use, because its processes may outlive the tool. */
  toolUsed(): void {
    this.#mayHaveLeft = true;
  }

  /** Call before the end of a turn is reported. A turn without tools leaves nothing behind. */
  async turnEnded(): Promise<void> {
    if (!this.#mayHaveLeft) return;
    this.#mayHaveLeft = false;
    await this.#refreshDetached();
  }

  /** Controls a detached process, unknown to Claude Code: `stop-task` ends the process and its descendants. */
  async control({ do: what, taskId }: Extract<ControlRequest, { taskId: string }>): Promise<JsonObject> {
    if (what === "task-output")
      throw invalidArgument("taskId", "the output of a detached process is not kept. End the process with stop_task.");
    await this.#detached()?.end(taskId);
    await this.#refreshDetached();
    return { taskId };
  }

  async #refreshDetached(): Promise<void> {
    const found = await this.#detached()
      ?.list()
      .catch(() => undefined);
    if (found === undefined) return;
    const before = this.#shownDetached;
    this.#shownDetached = found;
    const isSame = found.length === before.length && found.every(({ id }, at) => id === before[at]?.id);
    if (!isSame) this.#report([...this.#reported, ...found]);
    if (found.length > 0 && !this.#isFollowed) void this.#follow();
  }

  async #follow(): Promise<void> {
    this.#isFollowed = true;
    while (this.#shownDetached.length > 0) {
      await sleep(LOOK_EVERY_MS, undefined, { ref: false });
      await this.#refreshDetached();
    }
    this.#isFollowed = false;
  }
}
