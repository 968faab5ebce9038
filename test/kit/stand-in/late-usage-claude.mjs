#!/usr/bin/env node
// The stand-in for Claude Code, with a delay for requests for its usage (`get_usage`): later lines overtake them.
const LATE_MS = 500;

const emit = Reflect.get(process.stdin, "emit");
process.stdin.emit = function (event, chunk, ...rest) {
  if (event !== "data") return emit.call(this, event, chunk, ...rest);
  for (const line of chunk.toString().split(/(?<=\n)/)) {
    const take = () => emit.call(this, event, Buffer.from(line), ...rest);
    if (line.includes('"subtype":"get_usage"')) setTimeout(take, LATE_MS);
    else take();
  }
  return true;
};
await import("./claude.mjs");
