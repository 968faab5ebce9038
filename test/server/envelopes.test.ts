import { testAnswers } from "../kit/random/answered.ts";
import { useWorld } from "../kit/world.ts";

/** Sends some envelopes; `test/matrices/envelopes.test.ts` sends more. */

testAnswers(useWorld({ agent: "stand-in" }), { http: 150, stdio: 425 });
