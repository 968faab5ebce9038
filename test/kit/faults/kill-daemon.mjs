// Loaded with --import (preload.ts): kills the daemon at an exact point of its work; no-op in every other process. KILL_POINTS
// lists a point for the first daemon, for the next, and so on; each death appends a character to the file KILL_MARK. The first
// daemon survives its point KILL_SKIP times. KILL_WAY: "exit", "exception" or "memory" to die without SIGKILL (default),
// "SIGTERM" to end in order.
import { appendFileSync, readFileSync } from "node:fs";
import { Socket } from "node:net";

const {
  KILL_MARK: mark = "",
  KILL_POINTS: points = "",
  KILL_SKIP: skip = "0",
  KILL_WAY: way = "SIGKILL",
} = process.env;
const born = deaths();
const point = points.split(",")[born];
let skips = born === 0 ? Number(skip) : 0;

function die() {
  if (deaths() > born) return;
  skips -= 1;
  if (skips >= 0) return;
  appendFileSync(mark, "x");
  if (way === "exit") process.exit(7);
  if (way === "SIGTERM") {
    process.kill(process.pid, way);
    return;
  }
  if (way === "exception") {
    // No caller catches an exception of the next tick.
    process.nextTick(() => {
      throw new Error("a fault of this test");
    });
    return;
  }
  // Fills memory up to the limit of --max-old-space-size.
  if (way === "memory") for (const kept = []; ;) kept.push(Array.from({ length: 10_000 }, () => kept.length));
  process.kill(process.pid, "SIGKILL");
  // The signal takes effect before `Atomics.wait` returns.
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}

function deaths() {
  try {
    return readFileSync(mark, "utf8").length;
  } catch {
    return 0;
  }
}

/** By point: pattern of a frame's header towards the shim, or of the line in its body. */
const FRAMES = {
  // The first match is the answer to the hook that is called before each use of a tool.
  answer: /"t":"write".*"lineId":"r:/,
  permission: /"t":"write".*"lineId":"r:/,
  prompt: /"t":"write".*"lineId":"[0-9a-f]{8}-/,
  control: /"t":"write".*"lineId":"\d+:/,
  acknowledgement: /"t":"ack"/,
  start: /"t":"start"/,
  attach: /"t":"attach"/,
};

/** Line that sends a refused request again, with or without a shim. */
const AGAIN = '"role":"user","content":[]';

/** Patterns that the line must match, too. */
const BODIES = { control: /"subtype":"set_/, permission: /"behavior":"allow"/ };

/** Text in a line of Claude Code after which the daemon dies: the line is read, but not stored or answered. */
const LINES = { line: '"type":"tool_result"', elicitation: '"subtype":"elicitation"' };

function install() {
  const [when, what] = point.split(" ");
  if (LINES[what]) return onLine(LINES[what]);
  if (what === "again") return onWrite(when, AGAIN);
  if (what in STORED) return onCommit(when, STORED[what]);
  onFrame(when, FRAMES[what], BODIES[what]);
}

/** By point: text in the transaction: the result of a tool, the start of a process, or a type of event. */
const STORED = {
  commit: "tool_result",
  record: "process.started",
  baseline: "turn.baseline",
  request: "permission.asked",
  verification: "verification.ended",
  receipt: "turn.receipt",
  refusal: "duration_api_ms",
  wait: "The API refuses requests of this account",
  decision: "is sent once more",
  end: "turn.ended",
};

const isShim = (socket) => socket.remoteName === true;

const connect = Reflect.get(Socket.prototype, "connect");
Socket.prototype.connect = function (...args) {
  this.remoteName = JSON.stringify(args).includes('.shim"');
  return connect.apply(this, args);
};

function onFrame(when, header, body) {
  const write = Reflect.get(Socket.prototype, "write");
  let isMeant = false;
  Socket.prototype.write = function (chunk, ...rest) {
    if (!isShim(this)) return write.call(this, chunk, ...rest);
    const text = Buffer.from(chunk).toString("latin1");
    // The body of a frame is in the same chunk or, if large, in the next.
    const isFrame = header.test(text);
    const isNow = body ? (isMeant || isFrame) && body.test(text) : isFrame;
    isMeant = isFrame;
    if (isNow && when === "before") die();
    const result = write.call(this, chunk, ...rest);
    if (isNow && when === "after") {
      this.uncork();
      setImmediate(die);
    }
    return result;
  };
}

/** Dies before or after a line with `part` is written to Claude Code or its shim. */
function onWrite(when, part) {
  const write = Reflect.get(Socket.prototype, "write");
  Socket.prototype.write = function (chunk, ...rest) {
    const isNow = Buffer.from(chunk).includes(part);
    if (isNow && when === "before") die();
    const result = write.call(this, chunk, ...rest);
    if (isNow && when === "after") {
      this.uncork();
      setImmediate(die);
    }
    return result;
  };
}

function onLine(part) {
  const emit = Reflect.get(Socket.prototype, "emit");
  Socket.prototype.emit = function (event, chunk, ...rest) {
    const result = emit.call(this, event, chunk, ...rest);
    if (event === "data" && isShim(this) && chunk.includes(part)) die();
    return result;
  };
}

/** Dies before or after the COMMIT of the transaction that stores a value containing `what`. */
function onCommit(when, what) {
  const builtIn = process.getBuiltinModule("node:sqlite");
  if (builtIn) {
    builtIn.DatabaseSync = watched(builtIn.DatabaseSync, when, what);
    return;
  }
  const dlopen = Reflect.get(process, "dlopen");
  process.dlopen = (module, ...rest) => {
    dlopen.call(process, module, ...rest);
    if (module.exports.DatabaseSync) module.exports.DatabaseSync = watched(module.exports.DatabaseSync, when, what);
  };
}

function watched(Database, when, what) {
  let isMeant = false;
  return class extends Database {
    prepare(...args) {
      const statement = super.prepare(...args);
      const run = statement.run.bind(statement);
      const value = (...values) => {
        if (JSON.stringify(values).includes(what)) isMeant = true;
        return run(...values);
      };
      Object.defineProperty(statement, "run", { value });
      return statement;
    }

    exec(sql) {
      const isNow = sql === "COMMIT" && isMeant;
      if (isNow) isMeant = false;
      if (isNow && when === "before") die();
      super.exec(sql);
      if (isNow && when === "after") die();
    }
  };
}

if (process.argv.slice(2, 4).join(" ") === "daemon run" && point) install();
