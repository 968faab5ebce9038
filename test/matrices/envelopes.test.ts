import { testAnswers } from "../kit/random/answered.ts";
import { useWorld } from "../kit/world.ts";

testAnswers(useWorld({ agent: "stand-in" }), { http: 1_500, stdio: 3_750 });
