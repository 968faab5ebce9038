// Loaded into the processes of a coverage run, by test/support/coverage.ts and by NODE_OPTIONS: a Node process that is about to be
// killed writes its counts first, which Node does only at an ordinary end.
import { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { takeCoverage } from "node:v8";

/** Of the mask of caught signals in /proc. */
const SIGUSR2_BIT = 1n << 11n;
/** Time for a process to write its counts, ms. One that is stopped or hangs does not. */
const WRITE_MS = 1_000;

process.on("SIGUSR2", () => takeCoverage());

const kill = process.kill.bind(process);
process.kill = (pid, signal) => {
  if (isCounted(signal)) for (const each of pid < 0 ? groupOf(-pid) : [pid]) writeCounts(each);
  return kill(pid, signal);
};
const killChild = Reflect.get(ChildProcess.prototype, "kill");
ChildProcess.prototype.kill = function killAfterCounts(signal) {
  if (isCounted(signal) && this.pid !== undefined && this.exitCode === null) writeCounts(this.pid);
  return killChild.call(this, signal);
};

/** Whether counts are written before this signal. Other processes are found in /proc, which only Linux has. */
function isCounted(signal) {
  return process.platform === "linux" && (signal === "SIGKILL" || signal === 9);
}

function writeCounts(pid) {
  if (pid === process.pid || !isOurs(pid)) return;
  const before = countsOf(pid);
  try {
    // One that does not catch it is at its end, and writes them anyway.
    if (catchesSignal(pid)) kill(pid, "SIGUSR2");
  } catch {
    return;
  }
  const waiting = new Int32Array(new SharedArrayBuffer(4));
  const deadline = Date.now() + WRITE_MS;
  while (countsOf(pid) === before && isAlive(pid) && Date.now() < deadline) Atomics.wait(waiting, 0, 0, 5);
}

/** How many files of counts it has written whole. */
function countsOf(pid) {
  const files = readdirSync(process.env.NODE_V8_COVERAGE).filter((name) => name.startsWith(`coverage-${pid}-`));
  return files.filter((name) => readFileSync(`${process.env.NODE_V8_COVERAGE}/${name}`, "utf8").endsWith("}")).length;
}

/** A Node process that was started with this module. */
function isOurs(pid) {
  try {
    const isHooked = readFileSync(`/proc/${pid}/environ`, "utf8").includes("coverage-before-kill");
    return isHooked && readlinkSync(`/proc/${pid}/exe`) === process.execPath && isAlive(pid);
  } catch {
    return false;
  }
}

function catchesSignal(pid) {
  const [, mask = "0"] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(statusOf(pid)) ?? [];
  return (BigInt(`0x${mask}`) & SIGUSR2_BIT) !== 0n;
}

/** It has not ended and is not stopped. */
function isAlive(pid) {
  try {
    return !/^State:\s*[TtXZ]/m.test(statusOf(pid));
  } catch {
    return false;
  }
}

function statusOf(pid) {
  return readFileSync(`/proc/${pid}/status`, "utf8");
}

function groupOf(leader) {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]) === leader;
      } catch {
        return false;
      }
    })
    .map(Number);
}
