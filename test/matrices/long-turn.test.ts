import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();

it("a call that blocks returns the result of a turn that takes longer than 45 s", async () => {
  const patient = await world.server({ args: ["--max-wait-ms", "90000"] });
  const prompt = scriptTag([{ delayMs: 46_000, text: "At last." }]);
  const done = await patient.call("claude_code", { prompt, cwd: world.folder(), waitMs: 90_000 });
  expect(done).toMatchObject({ status: "idle", result: { result: "At last.", isError: false, numTurns: 1 } });
  expect(done.result?.durationMs).toBeGreaterThan(45_000);
});
