import { testAnswers } from "../support/random/answered.ts";
import { useWorld } from "../support/world.ts";

testAnswers(useWorld({ agent: "stand-in" }), { http: 1_500, stdio: 3_750 });
