// Loaded with --import (preload.ts): makes the daemon send its shim STOP_SIGNAL at STOP_POINT, once; no-op in every other
// process. STOP_POINT is "spawn", for a shim just started, or the type of the message before which the shim gets the signal.
// The file STOP_MARK then holds the pid of the shim.
import childProcess from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Socket } from "node:net";

const { STOP_MARK: mark = "", STOP_POINT: point = "", STOP_SIGNAL: signal = "" } = process.env;
let shim = 0;

function stop() {
  if (existsSync(mark)) return;
  process.kill(shim, signal);
  writeFileSync(mark, String(shim));
}

function onSpawn() {
  const spawn = Reflect.get(childProcess, "spawn");
  childProcess.spawn = (command, args, ...rest) => {
    const child = spawn(command, args, ...rest);
    if (String(args?.[0]).endsWith("shim.js")) {
      shim = child.pid;
      if (point === "spawn") stop();
    }
    return child;
  };
  syncBuiltinESMExports();
}

function onFrame() {
  const [connect, emit, write] = ["connect", "emit", "write"].map((name) => Reflect.get(Socket.prototype, name));
  Socket.prototype.connect = function (...args) {
    this.isToShim = JSON.stringify(args).includes('.shim"');
    return connect.apply(this, args);
  };
  Socket.prototype.write = function (chunk, ...rest) {
    if (this.isToShim && Buffer.from(chunk).includes(`"t":"${point}"`)) stop();
    return write.call(this, chunk, ...rest);
  };
  // Learns the pid from the `hello` of a shim that another daemon has started.
  Socket.prototype.emit = function (event, chunk, ...rest) {
    const hello = this.isToShim && event === "data" ? /"t":"hello".*?"pid":(\d+)/.exec(chunk) : undefined;
    if (hello) shim = Number(hello[1]);
    return emit.call(this, event, chunk, ...rest);
  };
}

if (process.argv.slice(2, 4).join(" ") === "daemon run" && point) {
  onSpawn();
  onFrame();
}
