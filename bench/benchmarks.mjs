/** All of them, in the order in which they are run. */
import { answers } from "./answers.mjs";
import { burst } from "./burst.mjs";
import { firstTurn } from "./first-turn.mjs";
import { laterTurn } from "./later-turn.mjs";
import { permission } from "./permission.mjs";
import { startUp } from "./start-up.mjs";
import { wake } from "./wake.mjs";
import { waiting } from "./waiting.mjs";

export const BENCHMARKS = [startUp, firstTurn, laterTurn, wake, permission, waiting, burst, answers];
