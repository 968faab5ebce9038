import { describe, it } from "vitest";

import { BEHAVIOURS, expectOf, usePeople, type Way } from "../support/elicitation.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in" });
const at = usePeople(world);

/** Each behaviour, kind of client and transport occurs here; `test/matrices` has all combinations. */
const DEALT: readonly Way[] = [
  ["modern", "stdio"],
  ["legacy", "http"],
  ["v1", "stdio"],
  ["modern", "http"],
];
const SLOWER = Object.keys(BEHAVIOURS).find((title) => title.startsWith("is slower"))!;
/** Differs in the later era, in which the server cannot take a form back. */
const ROWS = [...Object.keys(BEHAVIOURS), SLOWER].map(
  (title, index) => [title, ...DEALT[index % DEALT.length]!] as const,
);

describe("a person", () => {
  it.each(ROWS)("%s: %s client over %s", async (title, ...way) => {
    await expectOf(title, await at(...way));
  });
});
