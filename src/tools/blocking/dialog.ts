import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import type { OpenAsk } from "../../domain/permission.ts";
import type { NeedsInput } from "../asking/needs-input.ts";
import { endWithForm, FORMS_MOST, resumed, Round, takeShown } from "../asking/rounds.ts";
import { reachesUser, type Asker } from "../asking/user.ts";
import type { SessionView } from "../session-view.ts";

/** How far a call has followed its turn when it ends with a form. */
const Place = z.object({ promptId: z.string(), next: z.int() });
type Place = z.infer<typeof Place>;

const Paused = Round.extend({ place: Place });

/** The call lasts as long as its turn does; a form, until its request is no longer with the user. ms. */
const NEVER_MS = 2_147_483_647;

/** What a call that blocks has to do with the person at its client, from one form to the next. */
export class Dialog {
  readonly #tool: string;
  readonly #asker: Asker;
  readonly #resumed: z.infer<typeof Paused> | undefined;
  #work: JsonObject | undefined;
  /** Of a request whose form came back unclear. */
  #again: string | undefined;
  #isUnattended = false;

  constructor(tool: string, asker: Asker) {
    this.#tool = tool;
    this.#asker = asker;
    this.#resumed = resumed(Paused, tool, asker.call);
    this.#work = this.#resumed?.work;
  }

  /** What the tool has done; undefined until it begins, unless the call comes back. */
  get work(): JsonObject | undefined {
    return this.#work;
  }

  begin(work: JsonObject): void {
    this.#work = work;
  }

  /** Where the call goes on that comes back. */
  get place(): Place | undefined {
    return this.#resumed?.place;
  }

  /** Whether a form can be shown at all. */
  get isPossible(): boolean {
    return !this.#isUnattended && reachesUser(this.#asker);
  }

  /** A call can be in so many rounds and no more. */
  get isOver(): boolean {
    return this.#forms >= FORMS_MOST;
  }

  /** What came of the form that the call comes back with. */
  async take(view: SessionView): Promise<void> {
    if (!this.#resumed || !this.isPossible) return;
    const { shown } = this.#resumed;
    const taken = await takeShown(view, this.#resumed, this.#asker);
    if (taken === "unclear") this.#again = shown.requestId;
    if (taken === "unattended") this.#isUnattended = true;
  }

  async show(view: SessionView, open: OpenAsk, place: Place): Promise<NeedsInput | undefined> {
    const round = { tool: this.#tool, work: this.#work ?? {}, forms: this.#forms, place };
    return endWithForm(view, open, { again: this.#again, round, withinMs: NEVER_MS }, this.#asker);
  }

  get #forms(): number {
    return this.#resumed?.forms ?? 0;
  }
}
