import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";

const COUNT_BY_HAND = `
  import { readFileSync } from "node:fs";
  import { faultsByHand } from "./scripts/test-mutations/by-hand.mjs";
  console.log(faultsByHand((file) => readFileSync(file, "utf8")).length);`;

it("every fault of by-hand.mjs still occurs in the sources, once", () => {
  const counted = execFileSync(process.execPath, ["--input-type=module", "-e", COUNT_BY_HAND], { encoding: "utf8" });
  expect(counted).toBe("6\n");
});
