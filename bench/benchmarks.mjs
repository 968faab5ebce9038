/** Lists all benchmarks in running order. */
import { answers } from "./answers.mjs";
import { atOnce } from "./at-once.mjs";
import { burst } from "./burst.mjs";
import { daemon } from "./daemon.mjs";
import { daemonWaiting } from "./daemon-waiting.mjs";
import { firstTurn } from "./first-turn.mjs";
import { fiveClients } from "./five-clients.mjs";
import { laterTurn } from "./later-turn.mjs";
import { limits } from "./limits.mjs";
import { overHttp } from "./load.mjs";
import { longLog } from "./long-log.mjs";
import { npx } from "./npx.mjs";
import { otherServers } from "./other-servers.mjs";
import { permission } from "./permission.mjs";
import { postgres, postgresFull } from "./postgres.mjs";
import { sessionList } from "./session-list.mjs";
import { shim } from "./shim.mjs";
import { startUp } from "./start-up.mjs";
import { thousand } from "./thousand.mjs";
import { turnEnd, turnEndLarge } from "./turn-end.mjs";
import { waiting } from "./waiting.mjs";
import { wake } from "./wake.mjs";

const SHORT = [startUp, firstTurn, laterTurn, limits, turnEnd, wake, permission, waiting, burst, answers, daemon];
const LONG = [
  turnEndLarge,
  longLog,
  sessionList,
  atOnce,
  thousand,
  fiveClients,
  daemonWaiting,
  shim,
  npx,
  overHttp,
  postgres,
  postgresFull,
  otherServers,
];

export const BENCHMARKS = [...SHORT, ...LONG];
