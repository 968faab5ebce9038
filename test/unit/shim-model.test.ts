import fc from "fast-check";
import { describe, it } from "vitest";
import { amount } from "../kit/runner/amount.ts";
import { type Owner, ExchangeModel } from "../kit/shim/exchange-model.ts";

const MOVES = {
  speak: (setting) => setting.speak(false),
  "speak in part": (setting) => setting.speak(true),
  exit: (setting) => setting.exit(),
  send: (setting) => setting.send(),
  arrive: (setting, owner) => setting.arrive(owner),
  close: (setting, owner) => setting.close(owner),
  read: (setting, owner) => setting.read(owner),
  commit: (setting, owner) => setting.commit(owner),
  acknowledge: (setting, owner) => setting.acknowledge(owner),
  decide: (setting, owner) => setting.decide(owner),
  stop: (setting, owner) => setting.stop(owner),
  write: (setting, owner) => setting.write(owner),
  claim: (setting) => setting.claim(),
  crash: (_, owner) => void (owner.life = "dead"),
  "lose what is on the way": (_, owner) => void (owner.life === "dead" && owner.toShim.splice(0)),
  freeze: (_, owner) => void (owner.life === "runs" && (owner.life = "frozen")),
  thaw: (_, owner) => void (owner.life === "frozen" && (owner.life = "runs")),
} satisfies Record<string, (setting: ExchangeModel, owner: Owner) => unknown>;
type Name = keyof typeof MOVES;

class Move implements fc.Command<object, ExchangeModel> {
  readonly #name: Name;
  readonly #pick: number;

  constructor(name: Name, pick: number) {
    this.#name = name;
    this.#pick = pick;
  }

  check(): boolean {
    return true;
  }

  /** Picks one of the last three owners. */
  run(_: object, setting: ExchangeModel): void {
    const owner = setting.owners.at(-1 - (this.#pick % Math.min(3, setting.owners.length)))!;
    const move: (of: ExchangeModel, by: Owner) => unknown = MOVES[this.#name];
    move(setting, owner);
    setting.check();
  }

  toString(): string {
    return `${this.#name} ${String(this.#pick)}`;
  }
}

/** Moves chosen more often, because the others mostly end a process or an owner. */
const OFTEN: readonly Name[] = [
  "speak",
  "speak in part",
  "send",
  "arrive",
  "read",
  "commit",
  "acknowledge",
  "decide",
  "write",
];
const move = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...OFTEN) }, fc.constantFrom(...(Object.keys(MOVES) as Name[]))),
    fc.nat(8),
  )
  .map(([name, pick]) => new Move(name, pick));

describe("a turn that changes hands", () => {
  it("a turn that changes hands loses, doubles and reorders no line, and does each write once, despite crashes", () => {
    fc.assert(
      fc.property(fc.commands([move], { maxCommands: 100, size: "max" }), (moves) => {
        const setting = new ExchangeModel();
        fc.modelRun(() => ({ model: {}, real: setting }), moves);
        setting.settle();
      }),
      { numRuns: amount(2_000, 100_000) },
    );
  }, 600_000);
});
