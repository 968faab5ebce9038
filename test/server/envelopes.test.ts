import { testAnswers } from "../kit/random/answered.ts";
import { useWorld } from "../kit/world.ts";

/** `test/matrices/envelopes.test.ts` sends more of them. */

testAnswers(useWorld({ agent: "stand-in" }), { http: 150, stdio: 425 });
