import { percentile } from "./figures.mjs";
import { load } from "./over-http/run.mjs";

const CLIENTS = 200;
const SESSIONS = 50;
const PROCESSES = 8;

const none = { atMostAlone: 0 };

export const overHttp = {
  name: "load",
  long: true,
  about: `${String(CLIENTS)} clients over HTTP, ${String(SESSIONS)} sessions on ${String(PROCESSES)} processes, for --minutes`,
  rows: [
    { row: "turns that ended", of: "turns", unit: "" },
    { row: "requests of Claude Code answered", of: "asked", unit: "" },
    { row: "calls", of: "calls", unit: "" },
    { row: "events reported", of: "events", unit: "" },
    { row: "clients that disconnected and reconnected", of: "vanished", unit: "" },
    { row: "events lost, changed or repeated", of: "unsound", unit: "", ...none },
    { row: "requests that failed", of: "failed", unit: "", ...none },
    { row: "requests refused by a limit", of: "refused", unit: "" },
    ...[50, 95, 99].map((part) => {
      return { row: `an event wakes its clients, ${String(part)} %`, of: `waking ${String(part)}`, unit: "ms" };
    }),
    {
      row: "live memory, last third of the time",
      of: "last",
      base: "its middle third",
      unit: "MB",
      atMost: 1.2,
    },
    { row: "peak memory, garbage included", of: "most", unit: "MB" },
    { row: "processor time of the server, of one core", of: "cpu", unit: "%" },
    { row: "additional open handles", of: "handles", unit: "", ...none },
    { row: "processes left", of: "children", unit: "", ...none },
  ],
  async run({ figures, minutes, progress, world }) {
    const forMs = minutes * 60_000;
    const found = await load({ world, clients: CLIENTS, sessions: SESSIONS, maxLive: PROCESSES, forMs, progress });
    const { counts, logs, thirds } = found;
    const failures = [...counts.failed, ...counts.unreachable];
    for (const failure of [...failures, ...found.complaints].slice(0, 10)) progress(failure);
    progress(`compared with the logs: ${JSON.stringify(logs)}`);
    for (const name of ["calls", "events", "vanished"]) figures.note(name, counts[name]);
    for (const name of ["turns", "asked"]) figures.note(name, found[name]);
    figures.note("unsound", logs.holes + logs.missed + logs.changed + logs.invented + found.twice);
    figures.note("failed", failures.length + counts.unknown);
    figures.note(
      "refused",
      Object.values(counts.refused).reduce((sum, count) => sum + count, 0),
    );
    for (const part of [50, 95, 99]) figures.note(`waking ${String(part)}`, percentile(counts.waking, part));
    figures.note("last", thirds?.last);
    figures.note("its middle third", thirds?.middle);
    figures.note("most", thirds?.most);
    figures.note("cpu", found.cpuSeconds === undefined ? undefined : (100 * found.cpuSeconds) / found.seconds);
    figures.note("handles", found.handlesMore === undefined ? undefined : Math.max(found.handlesMore, 0));
    figures.note("children", found.children);
  },
};
